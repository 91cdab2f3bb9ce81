//! Files: round trips, every kind of broken file, writing whole or not at all.

use miras_host::{Bundle, Data, Pending, Tensor, parse, read, write};
use std::fs;

fn sample() -> Bundle {
    let mut bundle = Bundle::new();
    bundle.insert("a", Tensor::f32([2, 3], vec![1.5, -0.0, f32::MIN_POSITIVE, f32::MAX, f32::NAN, 1e-45]));
    bundle.insert("b", Tensor::f64([2], vec![1.0 / 3.0, f64::INFINITY]));
    bundle.insert("c", Tensor::i64([3], vec![i64::MIN, 0, i64::MAX]));
    bundle.insert("empty", Tensor::f32([2, 0, 5], vec![]));
    bundle.insert("scalar", Tensor::f64(vec![], vec![7.0]));
    bundle
}

fn bits(bundle: &Bundle) -> Vec<(String, Vec<usize>, Vec<u64>)> {
    let entry = |t: &Tensor| match &t.data {
        Data::F32(x) => x.iter().map(|x| u64::from(x.to_bits())).collect(),
        Data::F64(x) => x.iter().map(|x| x.to_bits()).collect(),
        Data::I64(x) => x.iter().map(|x| *x as u64).collect(),
    };
    bundle.iter().map(|(n, t)| (n.to_string(), t.shape.clone(), entry(t))).collect()
}

/// A file by hand: header text and entries.
fn raw(header: &str, entries: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(entries);
    bytes
}

#[test]
fn what_is_written_is_read_back_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.safetensors");
    write(&path, &sample()).unwrap();
    assert_eq!(bits(&read(&path).unwrap()), bits(&sample()));
    // Once more over the first, through a link.
    #[cfg(unix)]
    {
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write(&link, &Bundle::new()).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(read(&path).unwrap().is_empty());
    }
}

#[test]
fn half_width_floats_and_int32_are_widened_exactly_and_others_are_named() {
    let header = r#"{"h":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},
        "b":{"dtype":"BF16","shape":[1],"data_offsets":[4,6]},
        "u":{"dtype":"U8","shape":[2],"data_offsets":[6,8]},
        "i":{"dtype":"I32","shape":[1],"data_offsets":[8,12]}}"#;
    let entries = [0x00, 0x3e, 0x01, 0x00, 0x80, 0xbf, 1, 2, 0xff, 0xff, 0xff, 0xff];
    let bundle = parse(&raw(header, &entries)).unwrap();
    assert_eq!(bundle.get("h").unwrap().data, Data::F32(vec![1.5, 2.0_f32.powi(-24)]));
    assert_eq!(bundle.get("b").unwrap().data, Data::F32(vec![-1.0]));
    assert_eq!(bundle.get("i").unwrap().data, Data::I64(vec![-1]));
    assert!(bundle.get("u").is_none());
    assert_eq!(bundle.foreign("u").unwrap().element, "U8");
}

#[test]
fn every_kind_of_broken_file_is_told() {
    let one = |shape: &str, from: u64, to: u64| {
        format!(r#"{{"x":{{"dtype":"F32","shape":{shape},"data_offsets":[{from},{to}]}}}}"#)
    };
    let two = |a: [u64; 2], b: [u64; 2]| {
        let t = |n: &str, o: [u64; 2]| {
            format!(r#""{n}":{{"dtype":"F32","shape":[1],"data_offsets":[{},{}]}}"#, o[0], o[1])
        };
        format!("{{{},{}}}", t("x", a), t("y", b))
    };
    let deep = "[".repeat(100_000);
    let mut non_text = raw("{}", &[]);
    non_text[8] = 0xff;
    let rows: Vec<(Vec<u8>, &str)> = vec![
        (vec![], "0 bytes"),
        (vec![1, 2, 3], "3 bytes"),
        (u64::MAX.to_le_bytes().to_vec(), "header"),
        (1_000_000_u64.to_le_bytes().to_vec(), "longer than the file"),
        (200_000_000_u64.to_le_bytes().to_vec(), "100 MB"),
        (non_text, "UTF-8"),
        (raw("not json", &[]), "JSON"),
        (raw(&deep, &[]), "JSON"),
        (raw(&one("[1]", 0, 4), &[0; 3]), "cut short"),
        (raw(&one("[1]", 0, 4), &[0; 5]), "appended"),
        (raw(&one("[2]", 0, 4), &[0; 4]), "do not fit"),
        (raw(&one("[1]", 4, 0), &[0; 4]), "`x`"),
        (raw(&one("[1]", 0, u64::MAX), &[0; 4]), "do not fit"),
        (raw(&one("[4294967296, 4294967296, 4294967296]", 0, 4), &[0; 4]), "beyond any memory"),
        (raw(&one("[-1]", 0, 4), &[0; 4]), "JSON"),
        (raw(&one("[1.5]", 0, 4), &[0; 4]), "JSON"),
        (raw(&two([0, 4], [0, 4]), &[0; 4]), "overlap"),
        (raw(&two([0, 4], [2, 6]), &[0; 6]), "overlap"),
        (raw(&two([0, 4], [8, 12]), &[0; 12]), "gap"),
        (raw(r#"{"x":{"dtype":"Q9","shape":[1],"data_offsets":[0,4]}}"#, &[0; 4]), "JSON"),
        (b"\x89PNG\r\n\x1a\n and so on".to_vec(), "header"),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (bytes, what) in rows {
        let path = folder.path().join("broken.safetensors");
        fs::write(&path, &bytes).unwrap();
        let problem = read(&path).unwrap_err();
        assert_eq!(problem.code.0, "E0507");
        assert!(problem.message.contains(what), "{} lacks {what}", problem.message);
        assert!(problem.message.contains("broken.safetensors") && problem.help.is_some());
    }
}

#[test]
fn no_change_of_a_sound_file_brings_the_reader_down() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.safetensors");
    write(&path, &sample()).unwrap();
    let sound = fs::read(&path).unwrap();
    let mut seed = 1_u64;
    let mut random = move |n: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % n.max(1) as u64) as usize
    };
    let mut refused = 0;
    for _ in 0..20_000 {
        let mut bytes = sound.clone();
        for _ in 0..=random(3) {
            let at = random(bytes.len());
            match random(6) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, random(256) as u8),
                2 => bytes.extend(vec![0; random(16)]),
                3 => bytes.iter_mut().skip(at).take(4).for_each(|b| *b = b'9'),
                4 => bytes.iter_mut().take(8).skip(random(8)).take(1).for_each(|b| *b = 0xff),
                _ => bytes.iter_mut().skip(at).take(1).for_each(|b| *b ^= 1 << random(8)),
            }
            if bytes.is_empty() {
                break;
            }
        }
        // Whatever it says, what it accepts is consistent.
        match parse(&bytes) {
            Ok(bundle) => {
                bundle.iter().for_each(|(_, t)| assert_eq!(t.shape.iter().product::<usize>(), t.len()))
            }
            Err(why) => refused += usize::from(!why.is_empty()),
        }
    }
    assert!(refused > 5_000, "{refused}");
}

#[test]
fn paths_that_hold_no_file_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let missing = read(&folder.path().join("no.safetensors")).unwrap_err();
    assert_eq!(missing.code.0, "E0507");
    assert!(
        missing.message.contains("no.safetensors") && missing.message.contains("no such file"),
        "{missing}"
    );
    let is_folder = read(folder.path()).unwrap_err();
    assert!(is_folder.message.contains("folder"), "{is_folder}");
    #[cfg(unix)]
    {
        // Endless, and a pipe that nobody writes to.
        let endless = read(std::path::Path::new("/dev/zero")).unwrap_err();
        assert!(endless.message.contains("regular file"), "{endless}");
    }
}

#[test]
fn a_failed_write_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.safetensors");
    fs::write(&path, b"old").unwrap();
    let mut wrong = Bundle::new();
    wrong.insert("x", Tensor { shape: vec![3], data: Data::F32(vec![0.0]) });
    assert_eq!(write(&path, &wrong).unwrap_err().code.0, "E0901");
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays");

    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    let problem = write(&path, &sample()).unwrap_err();
    assert!(problem.code.0 == "E0508" && problem.message.contains("read-only"), "{problem}");
    assert_eq!(fs::read(&path).unwrap(), b"old");

    for (bad, what) in [
        (folder.path().to_path_buf(), "folder"),
        (folder.path().join("none/x.safetensors"), "no such file"),
        (path.join("x.safetensors"), ""),
    ] {
        let problem = write(&bad, &sample()).unwrap_err();
        assert!(problem.code.0 == "E0508" && problem.message.contains(what), "{problem}");
        assert!(problem.help.is_some());
    }
    #[cfg(unix)]
    assert!(write(std::path::Path::new("/dev/null"), &sample()).is_err());
}

#[test]
#[cfg(unix)]
fn a_new_file_has_the_permissions_of_any_new_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("x"), folder.path().join("y"));
    write(&path, &sample()).unwrap();
    fs::write(&other, b"").unwrap();
    let mode = |p| fs::metadata(p).unwrap().permissions().mode();
    assert_eq!(mode(&path), mode(&other));
}

#[test]
#[cfg(unix)]
fn a_replaced_file_keeps_its_permissions_and_links_their_targets() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write(&at("private"), &sample()).unwrap();
    fs::set_permissions(at("private"), fs::Permissions::from_mode(0o600)).unwrap();
    write(&at("private"), &Bundle::new()).unwrap();
    assert_eq!(fs::metadata(at("private")).unwrap().permissions().mode() & 0o777, 0o600);

    // Two links on, there is no file yet.
    symlink("second", at("first")).unwrap();
    symlink("there", at("second")).unwrap();
    write(&at("first"), &sample()).unwrap();
    assert!(fs::symlink_metadata(at("first")).unwrap().is_symlink());
    assert!(fs::symlink_metadata(at("second")).unwrap().is_symlink());
    assert_eq!(bits(&read(&at("there")).unwrap()), bits(&sample()));

    symlink("round", at("round")).unwrap();
    let problem = write(&at("round"), &sample()).unwrap_err();
    assert!(problem.code.0 == "E0508" && problem.message.contains("circle"), "{problem}");
    symlink("none/x", at("lost")).unwrap();
    assert!(write(&at("lost"), &sample()).unwrap_err().message.contains("no such file"));
}

#[test]
fn nothing_lies_about_while_the_work_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.safetensors");
    let pending = Pending::open(&path).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    pending.commit(&sample()).unwrap();
    assert_eq!(bits(&read(&path).unwrap()), bits(&sample()));
}
