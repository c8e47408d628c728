//! Bytes as text for serde: each byte is the character of the same number, so that ASCII stays readable and nothing is lost.

use serde::{Deserialize, Deserializer, Serializer, de::Error};

pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&bytes.iter().map(|&b| char::from(b)).collect::<String>())
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let byte = |c: char| u8::try_from(c).map_err(|_| D::Error::custom(format!("`{c}` is not a byte")));
    text.chars().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use crate::Body;

    #[test]
    fn every_byte_comes_back() {
        let body = Body::Bytes((0..=255).collect());
        let text = serde_json::to_string(&body).unwrap();
        assert!(text.contains("ABC"));
        assert_eq!(serde_json::from_str::<Body>(&text).unwrap(), body);
        assert!(serde_json::from_str::<Body>("{\"Bytes\":\"€\"}").is_err());
    }
}
