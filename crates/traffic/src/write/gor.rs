//! Writes GoReplay's format. Its ids begin with what names the connection, as GoReplay's own do.

use std::io::{self, Write};

use super::sink::Sink;
use crate::{Field, Record, Response};

/// The writer.
pub(super) struct Gor<W> {
    out: W,
    count: u64,
    message: Vec<u8>,
}

impl<W: Write> Gor<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, count: 0, message: Vec::new() }
    }
}

impl<W: Write> Sink for Gor<W> {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        self.count += 1;
        let id = format!("{:016x}{:08x}", record.connection, self.count & 0xffff_ffff);
        self.message.clear();
        let request = &record.request;
        write!(self.message, "{} {} HTTP/1.1\r\n", request.method, request.target)?;
        write!(self.message, "Host: {}\r\n", request.authority)?;
        put_fields(&mut self.message, &request.headers);
        put_body(&mut self.message, &request.body, !request.body.is_empty());
        writeln!(self.out, "1 {id} {} 0", record.time_ns)?;
        self.out.write_all(&self.message)?;
        self.out.write_all(SEPARATOR)?;
        match &record.response {
            Some(response) => self.response(&id, record.time_ns, response),
            None => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write> Gor<W> {
    fn response(&mut self, id: &str, time_ns: u64, response: &Response) -> io::Result<()> {
        self.message.clear();
        write!(self.message, "HTTP/1.1 {} \r\n", response.status)?;
        let fields: Vec<Field> = response
            .headers
            .iter()
            .filter(|field| {
                !field.is("content-length") && !field.is("transfer-encoding") && !field.name.starts_with(':')
            })
            .cloned()
            .collect();
        put_fields(&mut self.message, &fields);
        put_body(&mut self.message, response.body.as_deref().unwrap_or_default(), true);
        writeln!(self.out, "2 {id} {} 0", time_ns.saturating_add(response.latency_ns))?;
        self.out.write_all(&self.message)?;
        self.out.write_all(SEPARATOR)
    }
}

fn put_fields(message: &mut Vec<u8>, fields: &[Field]) {
    for Field { name, value } in fields {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            message.extend_from_slice(part);
        }
    }
}

fn put_body(message: &mut Vec<u8>, body: &[u8], has_length: bool) {
    if has_length {
        message.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    message.extend_from_slice(b"\r\n");
    message.extend_from_slice(body);
}

const SEPARATOR: &[u8] = "\n\u{1f435}\u{1f648}\u{1f649}\n".as_bytes();
