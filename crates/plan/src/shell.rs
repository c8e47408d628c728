//! Words of a POSIX shell: the one place where text becomes part of a command line.
//! Owns: quoting for `sh`, bash, dash, busybox and zsh. Never: runs a command.

/// One word for any POSIX shell. Nothing inside single quotes is special; a single quote itself ends them and is escaped outside.
///
/// A word cannot hold NUL: callers refuse it, or write the text with [`printf_format`].
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A quoted format with which the shell's `printf` writes exactly these bytes, NUL included: `printf 'a\000b%%'`.
///
/// What is neither a printable ASCII character nor free of meaning to `printf` is written as three octal digits, which every
/// POSIX `printf` reads. So is a leading `-`, which would be an option.
pub fn printf_format(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('\'');
    for (at, byte) in bytes.iter().copied().enumerate() {
        match byte {
            b'\'' | b'\\' | b'%' => out.push_str(&format!("\\{byte:03o}")),
            b'-' if at == 0 => out.push_str("\\055"),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out.push('\'');
    out
}

/// The bytes that `printf` writes for such a format; `None` where it takes arguments or has an escape that POSIX leaves open.
pub fn printf_bytes(format: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(format.len());
    let mut rest = format.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'%', [b'%', tail @ ..]) => {
                bytes.push(b'%');
                rest = tail;
            }
            (b'%', _) => return None,
            (b'\\', tail) => {
                let (byte, used) = printf_escape(tail)?;
                bytes.push(byte);
                rest = &tail[used..];
            }
            (byte, _) => bytes.push(*byte),
        }
    }
    Some(bytes)
}

fn printf_escape(tail: &[u8]) -> Option<(u8, usize)> {
    let digits = tail.iter().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
    if digits > 0 {
        let value = tail[..digits].iter().fold(0_u32, |sum, digit| sum * 8 + u32::from(digit - b'0'));
        return Some((u8::try_from(value).ok()?, digits));
    }
    let (_, byte) = ESCAPES.into_iter().find(|(letter, _)| Some(letter) == tail.first())?;
    Some((byte, 1))
}

const ESCAPES: [(u8, u8); 8] = [
    (b'\\', b'\\'),
    (b'n', b'\n'),
    (b'r', b'\r'),
    (b't', b'\t'),
    (b'a', 7),
    (b'b', 8),
    (b'f', 12),
    (b'v', 11),
];

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// What each shell of this machine prints for a command line. dash, or another `sh`, is always there.
    fn shells() -> Vec<(&'static str, Vec<&'static str>)> {
        let all =
            [("sh", vec!["sh"]), ("bash", vec!["bash"]), ("dash", vec!["dash"]), ("zsh", vec!["zsh", "-f"])];
        let busybox = ("busybox", vec!["busybox", "sh"]);
        let is_there =
            |words: &[&str]| Command::new(words[0]).args(&words[1..]).args(["-c", ":"]).output().is_ok();
        all.into_iter().chain([busybox]).filter(|(_, words)| is_there(words)).collect()
    }

    fn printed(shell: &[&str], line: &[u8]) -> Vec<u8> {
        use std::os::unix::ffi::OsStrExt;
        let line = std::ffi::OsStr::from_bytes(line);
        let output = Command::new(shell[0]).args(&shell[1..]).arg("-c").arg(line).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{shell:?}");
        output.stdout
    }

    /// Bytes of a small generator: every value, with those that shells know more often.
    fn random_bytes(state: &mut u64, count: usize) -> Vec<u8> {
        const SPECIAL: &[u8] = b"'\"\\$`!#&|;<>(){}[]*?~%-=^@ \t\n\r\0";
        let mut next = || {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*state >> 33) as usize
        };
        (0..count)
            .map(|_| if next() % 2 == 0 { SPECIAL[next() % SPECIAL.len()] } else { next() as u8 })
            .collect()
    }

    #[test]
    fn every_shell_reads_back_random_words() {
        let mut state = 1;
        let words: Vec<String> = (0..200)
            .map(|nth| String::from_utf8_lossy(&random_bytes(&mut state, nth % 40)).replace('\0', "0"))
            .collect();
        let line: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let line = format!("for word in {}; do printf '%s\\000' \"$word\"; done", line.join(" "));
        let expected: Vec<u8> = words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
        for (name, shell) in shells() {
            assert!(printed(&shell, line.as_bytes()) == expected, "{name}");
        }
    }

    #[test]
    fn every_shell_prints_random_bytes() {
        let mut state = 2;
        let mut samples: Vec<Vec<u8>> = (0..100).map(|nth| random_bytes(&mut state, nth)).collect();
        samples.push((0..=255).collect());
        samples.push(b"-n %s $(id) `id`".to_vec());
        for bytes in &samples {
            let format = printf_format(bytes);
            assert_eq!(printf_bytes(&format[1..format.len() - 1]).as_ref(), Some(bytes));
        }
        let line: Vec<String> =
            samples.iter().map(|bytes| format!("printf {}", printf_format(bytes))).collect();
        for (name, shell) in shells() {
            assert!(printed(&shell, line.join(";").as_bytes()) == samples.concat(), "{name}");
        }
    }

    #[test]
    fn formats_of_printf_are_read_as_posix_has_them() {
        for (format, bytes) in [
            ("a%%b", Some(&b"a%b"[..])),
            (r"\0\12\1012", Some(b"\0\nA2")),
            (r"\n\r\t\\", Some(b"\n\r\t\\")),
            ("%s", None),
            ("%", None),
            (r"\x41", None),
            (r"\400", None),
            ("\\", None),
        ] {
            assert_eq!(printf_bytes(format).as_deref(), bytes, "{format}");
        }
    }
}
