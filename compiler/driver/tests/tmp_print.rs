use miras_base::DimEnv;
use miras_driver::{Choice, Session};
use miras_schedule::Request;
use miras_spec as spec;
use miras_tensor as tensor;
#[test]
fn print() {
    let mut session = Session::new(spec::Library::standard());
    let root = session.add("a.miras", &std::env::var("LAYER").unwrap());
    let program = session.load(root, &mut |_| Err("".into())).unwrap().value;
    let rule = session.rule(&program, &Choice::default()).unwrap().value;
    let plan = session.plan(rule, Request::Default).unwrap().value;
    let sizes = tensor::Sizes { dims: DimEnv::from([("dk".into(), 64), ("dv".into(), 64)]) };
    let p = session.compile_blocks(&plan, &sizes).unwrap().value.unwrap();
    println!("{}", miras_kernel::print::program(&p));
}
