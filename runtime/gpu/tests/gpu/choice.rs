//! Which adapter is taken, and what is said about the others.

use crate::device;
use miras_base::diagnostic::code;
use miras_gpu::{Choice, adapters, choose};

#[test]
fn auto_never_takes_a_software_adapter() {
    match choose(&Choice::Auto) {
        Ok(adapter) => assert!(!adapter.software, "{}", adapter.description()),
        Err(error) => {
            assert_eq!(error.code, code::NO_DEVICE);
            let software = adapters().into_iter().filter(|a| a.software);
            for adapter in software {
                let told = error.notes.iter().any(|n| n.contains(&adapter.name) && n.contains("in software"));
                assert!(told, "{:?}", error.notes);
            }
        }
    }
}

#[test]
fn an_adapter_may_be_named() {
    let Some(device) = device() else { return };
    let name = device.adapter().name.to_uppercase();
    assert_eq!(choose(&Choice::Named(name)).unwrap().name, device.adapter().name);
    let error = choose(&Choice::Named("no such adapter".into())).unwrap_err();
    assert_eq!(error.code, code::NO_DEVICE);
    assert!(error.notes.iter().any(|n| n.contains("another name")), "{:?}", error.notes);
}

#[test]
fn a_device_says_what_it_is() {
    let Some(device) = device() else { return };
    eprintln!("{}", device.description());
    assert!(device.description().contains("128 MiB"));
}
