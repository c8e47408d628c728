//! The table of HTTP/2 servers.

use squall_measure::Cause::*;
use squall_measure::Phase::*;
use squall_measure::{Cause, Phase};

use super::Peer;
use super::Reaction::*;
use super::talk::code::*;
use super::talk::flag::*;
use super::talk::{Talk, kind};

type Script = fn(&mut Talk<'_>) -> std::io::Result<()>;
type Failures = &'static [&'static [(Cause, Phase)]];

/// Every server.
pub const PEERS: &[Peer] = &[
    // Who does not speak HTTP/2.
    fatal("3.4", "the first frame is not SETTINGS", PROTOCOL_ERROR, |t| {
        t.request()?;
        t.send(kind::PING, 0, 0, &[0; 8])
    }),
    fatal("3.4", "the first frame is an acknowledgement", PROTOCOL_ERROR, |t| {
        t.request()?;
        t.send(kind::SETTINGS, ACK, 0, &[])
    }),
    fatal("3.4", "the answer is HTTP/1.1", PROTOCOL_ERROR, |t| {
        t.request()?;
        t.raw(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    }),
    fatal("3.4", "the answer is a TLS alert", PROTOCOL_ERROR, |t| {
        t.request()?;
        t.raw(&[0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x46, 0, 0])
    }),
    // Frames.
    fine("4.1", "a frame of an unknown kind", |t| {
        let id = t.begin()?;
        t.send(0xfa, 0xff, id, b"whatever")?;
        t.send(0xfa, 0, 0, &[])?;
        t.respond(id)
    }),
    fine("4.1", "unknown flags", |t| {
        let id = t.begin()?;
        t.send(kind::HEADERS, END_HEADERS | 0xc2, id, &[0x88])?;
        t.send(kind::DATA, END_STREAM | 0xf6, id, b"ok")
    }),
    fine("4.1", "the reserved bit of a stream id is set", |t| {
        let id = t.begin()?;
        t.send(kind::HEADERS, END_HEADERS | END_STREAM, id | 1 << 31, &[0x88])
    }),
    fatal_in_body("4.2", "DATA larger than a frame may be", FRAME_SIZE_ERROR, |t| {
        let id = t.begin()?;
        t.head(id, &[])?;
        t.send(kind::DATA, 0, id, &[0; 16_385])
    }),
    fatal("4.2", "HEADERS larger than a frame may be", FRAME_SIZE_ERROR, |t| {
        let id = t.begin()?;
        t.send(kind::HEADERS, END_HEADERS, id, &[0x88; 16_385])
    }),
    fine("4.2", "DATA as large as a frame may be", |t| {
        let id = t.begin()?;
        t.head(id, &[])?;
        t.body(id, &[0; 16_384])
    }),
    // Header blocks.
    fatal("4.3", "a block that HPACK cannot decode", COMPRESSION_ERROR, |t| {
        let id = t.begin()?;
        t.send(kind::HEADERS, END_HEADERS | END_STREAM, id, &[0x88, 0xff, 0xff])
    }),
    fatal("7541 2.3.3", "an index in neither table", COMPRESSION_ERROR, |t| {
        let id = t.begin()?;
        t.send(kind::HEADERS, END_HEADERS | END_STREAM, id, &[0x88, 0xbe])
    }),
    fatal("7541 6.3", "a table larger than announced", COMPRESSION_ERROR, |t| {
        let id = t.begin()?;
        t.send(kind::HEADERS, END_HEADERS | END_STREAM, id, &[0x3f, 0xe2, 0x1f, 0x88])
    }),
    fine("7541 4.2", "a table resized to nothing and back", |t| {
        let id = t.begin()?;
        t.send(
            kind::HEADERS,
            END_HEADERS | END_STREAM,
            id,
            &[0x20, 0x3f, 0xe1, 0x1f, 0x88, 0x40, 1, b'a', 1, b'b'],
        )?;
        let id = t.request()?;
        t.send(kind::HEADERS, END_HEADERS | END_STREAM, id, &[0x88, 0xbe])
    }),
    fatal("4.3", "a PING within a header block", PROTOCOL_ERROR, |t| {
        let id = t.begin()?;
        t.send(kind::HEADERS, END_STREAM, id, &[0x88])?;
        t.send(kind::PING, 0, 0, &[0; 8])
    }),
    fatal("4.3", "another stream's CONTINUATION", PROTOCOL_ERROR, |t| {
        let id = t.begin()?;
        t.send(kind::HEADERS, END_STREAM, id, &[0x88])?;
        t.send(kind::CONTINUATION, END_HEADERS, id + 2, &[])
    }),
    fatal("6.10", "CONTINUATION without HEADERS", PROTOCOL_ERROR, |t| {
        let id = t.begin()?;
        t.send(kind::CONTINUATION, END_HEADERS, id, &[0x88])
    }),
    fatal("6.10", "CONTINUATION on no stream", PROTOCOL_ERROR, |t| {
        let id = t.begin()?;
        t.send(kind::HEADERS, 0, id, &[0x88])?;
        t.send(kind::CONTINUATION, END_HEADERS, 0, &[])
    }),
    fine("6.10", "a head in several CONTINUATION frames", |t| {
        let id = t.begin()?;
        t.send(kind::HEADERS, END_STREAM, id, &[])?;
        for byte in [0x88, 0x00, 1, b'a', 1] {
            t.send(kind::CONTINUATION, 0, id, &[byte])?;
        }
        t.send(kind::CONTINUATION, END_HEADERS, id, b"b")
    }),
    fatal("10.5", "CONTINUATION without end", ENHANCE_YOUR_CALM, |t| {
        let id = t.begin()?;
        t.send(kind::HEADERS, 0, id, &[0x88])?;
        for _ in 0..1_000 {
            t.send(kind::CONTINUATION, 0, id, &[])?;
        }
        Ok(())
    }),
    fatal("10.5.1", "a header block of a megabyte", ENHANCE_YOUR_CALM, |t| {
        let id = t.begin()?;
        t.send(kind::HEADERS, 0, id, &[0x88])?;
        for _ in 0..64 {
            t.send(kind::CONTINUATION, 0, id, &[0x88; 16_384])?;
        }
        Ok(())
    }),
    Peer {
        failures: &[&[(HeadTooLarge, Waiting)]],
        ..resets("10.5.1", "a few bytes that stand for a head of a megabyte", CANCEL, |t| {
            let id = t.begin()?;
            // A field of 3,000 bytes, then indices of it.
            let mut block = vec![0x88, 0x40, 1, b'a', 0x7f, 0xb9, 0x16];
            block.extend_from_slice(&[b'x'; 3_000]);
            block.extend_from_slice(&[0xbe; 400]);
            t.send(kind::HEADERS, END_HEADERS | END_STREAM, id, &block)
        })
    },
    // Streams.
    fatal("5.1", "HEADERS on a stream that was never opened", PROTOCOL_ERROR, |t| {
        let id = t.begin()?;
        t.respond(id + 2)
    }),
    fatal("5.1", "DATA on a stream that was never opened", PROTOCOL_ERROR, |t| {
        let id = t.begin()?;
        t.body(id + 2, b"x")
    }),
    fatal("5.1", "RST_STREAM on a stream that was never opened", PROTOCOL_ERROR, |t| {
        let id = t.begin()?;
        t.send(kind::RST_STREAM, 0, id + 2, &[0; 4])
    }),
    fatal("5.1", "WINDOW_UPDATE on a stream that was never opened", PROTOCOL_ERROR, |t| {
        let id = t.begin()?;
        t.send(kind::WINDOW_UPDATE, 0, id + 2, &[0, 0, 0, 1])
    }),
    fatal("5.1.1", "HEADERS on a stream of the server's own", PROTOCOL_ERROR, |t| {
        t.begin()?;
        t.respond(2)
    }),
    fatal("5.1", "DATA on a stream that is closed", STREAM_CLOSED, |t| {
        let id = t.begin()?;
        t.respond(id)?;
        t.request()?;
        t.body(id, b"more")
    }),
    fatal("5.1", "HEADERS on a stream that is closed", STREAM_CLOSED, |t| {
        let id = t.begin()?;
        t.respond(id)?;
        t.request()?;
        t.respond(id)
    }),
    fine("5.1", "late frames on a stream that is closed", |t| {
        let id = t.begin()?;
        t.respond(id)?;
        let next = t.request()?;
        t.send(kind::WINDOW_UPDATE, 0, id, &[0, 0, 0, 1])?;
        t.send(kind::RST_STREAM, 0, id, &NO_ERROR.to_be_bytes())?;
        t.send(kind::PRIORITY, 0, id, &[0; 5])?;
        t.respond(next)
    }),
    Peer {
        failures: &[&[(Timeout, Waiting)]],
        ..resets("5.1", "an answer on a stream that the client has reset", CANCEL, |t| {
            let id = t.begin()?;
            t.until(kind::RST_STREAM)?;
            t.respond(id)
        })
    },
    Peer {
        failures: &[&[(Timeout, Waiting)]],
        ..resets("8.1", "no answer at all on one of several streams", CANCEL, |t| {
            t.settings(&[])?;
            t.request()?;
            Ok(())
        })
    }
    .with(&["--streams", "3"]),
    fine("5.1.2", "streams beyond the limit are refused", |t| {
        t.settings(&[(3, 1)])?;
        let ids = [t.request()?, t.request()?, t.request()?];
        t.send(kind::RST_STREAM, 0, ids[1], &REFUSED_STREAM.to_be_bytes())?;
        t.send(kind::RST_STREAM, 0, ids[2], &REFUSED_STREAM.to_be_bytes())?;
        t.respond(ids[0])
    })
    .with(&["--streams", "3"]),
    fine("5.1.2", "a limit that comes late is kept to from then on", |t| {
        t.settings(&[(3, 1)])?;
        let ids = [t.request()?, t.request()?, t.request()?];
        t.send(kind::RST_STREAM, 0, ids[1], &REFUSED_STREAM.to_be_bytes())?;
        t.send(kind::RST_STREAM, 0, ids[2], &REFUSED_STREAM.to_be_bytes())?;
        t.respond(ids[0])?;
        for _ in 0..8 {
            let id = t.request()?;
            t.send(kind::PING, 0, 0, &[0; 8])?;
            if t.next_but_settings()?.kind != kind::PING {
                return t.complain("a second stream although only one is allowed");
            }
            t.respond(id)?;
        }
        Ok(())
    })
    .with(&["--streams", "3", "-n9"]),
    Peer {
        reaction: ResetsStream(CANCEL),
        failures: &[&[(Timeout, Waiting), (Timeout, Blocked)]],
        connection_count: 2,
        ..fine("5.1.2", "no stream is allowed, ever", |t| {
            t.settings(&[(3, 0)])?;
            t.hold()
        })
    },
    // DATA.
    fatal("6.1", "DATA on no stream", PROTOCOL_ERROR, |t| {
        t.begin()?;
        t.body(0, b"x")
    }),
    fatal_in_body("6.1", "more padding than DATA", PROTOCOL_ERROR, |t| {
        let id = t.begin()?;
        t.head(id, &[])?;
        t.send(kind::DATA, PADDED | END_STREAM, id, &[5, b'o', b'k'])
    }),
    fatal_in_body("6.1", "padded DATA without a padding length", FRAME_SIZE_ERROR, |t| {
        let id = t.begin()?;
        t.head(id, &[])?;
        t.send(kind::DATA, PADDED | END_STREAM, id, &[])
    }),
    fine("6.1", "DATA with padding, and padding alone", |t| {
        let id = t.begin()?;
        t.head(id, &[0x0f, 0x0d, 1, b'2'])?;
        t.send(kind::DATA, PADDED, id, &[3, b'o', b'k', 0, 0, 0])?;
        t.send(kind::DATA, PADDED | END_STREAM, id, &[2, 0, 0])
    }),
    // HEADERS.
    fatal("6.2", "HEADERS on no stream", PROTOCOL_ERROR, |t| {
        t.begin()?;
        t.send(kind::HEADERS, END_HEADERS, 0, &[0x88])
    }),
    fatal("6.2", "more padding than HEADERS", PROTOCOL_ERROR, |t| {
        let id = t.begin()?;
        t.send(kind::HEADERS, END_HEADERS | PADDED, id, &[9, 0x88])
    }),
    fatal("6.2", "HEADERS too short for its priority", FRAME_SIZE_ERROR, |t| {
        let id = t.begin()?;
        t.send(kind::HEADERS, END_HEADERS | PRIORITY, id, &[0, 0, 0, 0])
    }),
    fine("6.2", "HEADERS with padding and a priority", |t| {
        let id = t.begin()?;
        let payload = [2, 0, 0, 0, 0, 16, 0x88, 0, 0];
        t.send(kind::HEADERS, END_HEADERS | END_STREAM | PADDED | PRIORITY, id, &payload)
    }),
    // PRIORITY.
    fatal("6.3", "PRIORITY on no stream", PROTOCOL_ERROR, |t| {
        t.begin()?;
        t.send(kind::PRIORITY, 0, 0, &[0; 5])
    }),
    resets("6.3", "PRIORITY of a wrong length", FRAME_SIZE_ERROR, |t| {
        let id = t.begin()?;
        t.send(kind::PRIORITY, 0, id, &[0; 4])
    }),
    fine("6.3", "PRIORITY on any stream", |t| {
        let id = t.begin()?;
        t.send(kind::PRIORITY, 0, id, &[0; 5])?;
        t.send(kind::PRIORITY, 0, 77, &[0; 5])?;
        t.respond(id)
    }),
    // RST_STREAM.
    fatal("6.4", "RST_STREAM on no stream", PROTOCOL_ERROR, |t| {
        t.begin()?;
        t.send(kind::RST_STREAM, 0, 0, &[0; 4])
    }),
    fatal("6.4", "RST_STREAM with a wrong length", FRAME_SIZE_ERROR, |t| {
        let id = t.begin()?;
        t.send(kind::RST_STREAM, 0, id, &[0; 3])
    }),
    Peer {
        failures: &[&[(StreamReset, Waiting)]],
        ..fine("6.4", "a stream is reset before the answer", |t| {
            let id = t.begin()?;
            t.send(kind::RST_STREAM, 0, id, &INTERNAL_ERROR.to_be_bytes())
        })
    },
    Peer {
        failures: &[&[(StreamReset, Receiving)]],
        ..fine("6.4", "a stream is reset within the answer", |t| {
            let id = t.begin()?;
            t.head(id, &[])?;
            t.send(kind::RST_STREAM, 0, id, &CANCEL.to_be_bytes())
        })
    },
    fine("8.7", "a request is refused once", |t| {
        let id = t.begin()?;
        t.send(kind::RST_STREAM, 0, id, &REFUSED_STREAM.to_be_bytes())
    }),
    fine("8.7", "a POST is refused once", |t| {
        let id = t.begin()?;
        t.send(kind::RST_STREAM, 0, id, &REFUSED_STREAM.to_be_bytes())
    })
    .with(&["--body", "x"]),
    Peer {
        failures: &[&[(StreamRefused, Waiting)]],
        ..fine("8.7", "a request is refused again and again", |t| {
            t.settings(&[])?;
            for _ in 0..33 {
                let id = t.request()?;
                t.send(kind::RST_STREAM, 0, id, &REFUSED_STREAM.to_be_bytes())?;
            }
            Ok(())
        })
    },
    // SETTINGS.
    Peer {
        reaction: Acknowledges(kind::SETTINGS),
        ..fine("6.5.3", "settings are acknowledged", |t| {
            let id = t.begin()?;
            t.settings(&[(4, 70_000), (0x99, 7)])?;
            t.until(kind::SETTINGS)?;
            t.respond(id)
        })
    },
    fatal("6.5", "SETTINGS on a stream", PROTOCOL_ERROR, |t| {
        let id = t.begin()?;
        t.send(kind::SETTINGS, 0, id, &[])
    }),
    fatal("6.5", "SETTINGS with a wrong length", FRAME_SIZE_ERROR, |t| {
        t.begin()?;
        t.send(kind::SETTINGS, 0, 0, &[0; 5])
    }),
    fatal("6.5", "an acknowledgement with a payload", FRAME_SIZE_ERROR, |t| {
        t.begin()?;
        t.send(kind::SETTINGS, ACK, 0, &[0; 6])
    }),
    fatal("6.5.2", "a server that allows pushing", PROTOCOL_ERROR, |t| {
        t.begin()?;
        t.settings(&[(2, 1)])
    }),
    fatal("6.5.2", "an initial window beyond 2^31 - 1", FLOW_CONTROL_ERROR, |t| {
        t.begin()?;
        t.settings(&[(4, 1 << 31)])
    }),
    fatal("6.5.2", "a largest frame below 16,384", PROTOCOL_ERROR, |t| {
        t.begin()?;
        t.settings(&[(5, 16_383)])
    }),
    fatal("6.5.2", "a largest frame beyond 2^24 - 1", PROTOCOL_ERROR, |t| {
        t.begin()?;
        t.settings(&[(5, 1 << 24)])
    }),
    fine("6.5.2", "a header table of no size, in mid-run", |t| {
        let id = t.begin()?;
        t.settings(&[(1, 0)])?;
        t.until(kind::SETTINGS)?;
        t.respond(id)?;
        let head = t.until(kind::HEADERS)?;
        if head.payload.first() != Some(&0x20) {
            return t.complain("the new size of the table is not acknowledged in the next header block");
        }
        t.respond(head.stream_id)
    }),
    Peer {
        failures: &[&[(HeadTooLarge, Blocked), (HeadTooLarge, Blocked)]],
        ..fine("6.5.2", "a server that takes small header lists only", |t| {
            t.settings(&[])?;
            let id = t.request()?;
            t.settings(&[(6, 40)])?;
            t.until(kind::SETTINGS)?;
            t.respond(id)
        })
    },
    // PUSH_PROMISE and PING.
    fatal("6.6", "PUSH_PROMISE although pushing is off", PROTOCOL_ERROR, |t| {
        let id = t.begin()?;
        t.send(kind::PUSH_PROMISE, END_HEADERS, id, &[0, 0, 0, 2, 0x82])
    }),
    Peer {
        reaction: Acknowledges(kind::PING),
        ..fine("6.7", "PING is answered with the same bytes", |t| {
            let id = t.begin()?;
            t.send(kind::PING, 0, 0, b"12345678")?;
            if t.until(kind::PING)?.payload != b"12345678" {
                return t.complain("a PING that is answered with other bytes");
            }
            t.respond(id)
        })
    },
    fine("6.7", "the answer to a PING that was never sent", |t| {
        let id = t.begin()?;
        t.send(kind::PING, ACK, 0, &[0; 8])?;
        t.respond(id)
    }),
    fatal("6.7", "PING on a stream", PROTOCOL_ERROR, |t| {
        let id = t.begin()?;
        t.send(kind::PING, 0, id, &[0; 8])
    }),
    fatal("6.7", "PING with a wrong length", FRAME_SIZE_ERROR, |t| {
        t.begin()?;
        t.send(kind::PING, 0, 0, &[0; 7])
    }),
    fatal("10.5", "PING without end", ENHANCE_YOUR_CALM, |t| {
        t.begin()?;
        for _ in 0..11_000 {
            t.send(kind::PING, ACK, 0, &[0; 8])?;
        }
        Ok(())
    }),
    fatal_in_body("10.5", "empty DATA without end", ENHANCE_YOUR_CALM, |t| {
        let id = t.begin()?;
        t.head(id, &[])?;
        for _ in 0..11_000 {
            t.send(kind::DATA, 0, id, &[])?;
        }
        Ok(())
    }),
    // GOAWAY.
    Peer {
        connection_count: 2,
        ..fine("6.8", "GOAWAY after the first answer", |t| {
            let id = t.begin()?;
            t.send(kind::GOAWAY, 0, 0, &[&id.to_be_bytes()[..], &[0; 4]].concat())?;
            t.respond(id)?;
            t.hold()
        })
    },
    Peer {
        connection_count: 2,
        ..fine("6.8", "GOAWAY that leaves the request alone", |t| {
            t.begin()?;
            t.send(kind::GOAWAY, 0, 0, &[0; 8])?;
            t.hold()
        })
    }
    .with(&["--body", "x"]),
    Peer {
        connection_count: 2,
        ..fine("6.8", "GOAWAY in the middle of a burst", |t| {
            t.settings(&[])?;
            let ids = [t.request()?, t.request()?, t.request()?];
            t.send(kind::GOAWAY, 0, 0, &[&ids[0].to_be_bytes()[..], &[0; 4]].concat())?;
            t.respond(ids[0])?;
            t.hold()
        })
    }
    .with(&["--streams", "3"]),
    fatal("6.8", "GOAWAY on a stream", PROTOCOL_ERROR, |t| {
        let id = t.begin()?;
        t.send(kind::GOAWAY, 0, id, &[0; 8])
    }),
    fatal("6.8", "GOAWAY with a wrong length", FRAME_SIZE_ERROR, |t| {
        t.begin()?;
        t.send(kind::GOAWAY, 0, 0, &[0; 7])
    }),
    Peer {
        failures: &[&[(ConnectionClosed, Waiting)]],
        connection_count: 2,
        ..fine("6.8", "GOAWAY with an error, and then the end", |t| {
            let id = t.begin()?;
            let payload = [&id.to_be_bytes()[..], &ENHANCE_YOUR_CALM.to_be_bytes()].concat();
            t.send(kind::GOAWAY, 0, 0, &payload)?;
            t.close()
        })
    },
    // Flow control.
    fatal("6.9", "the connection's window widened by nothing", PROTOCOL_ERROR, |t| {
        t.begin()?;
        t.send(kind::WINDOW_UPDATE, 0, 0, &[0; 4])
    }),
    resets("6.9", "a stream's window widened by nothing", PROTOCOL_ERROR, |t| {
        let id = t.begin()?;
        t.send(kind::WINDOW_UPDATE, 0, id, &[0; 4])
    }),
    fatal("6.9", "WINDOW_UPDATE with a wrong length", FRAME_SIZE_ERROR, |t| {
        t.begin()?;
        t.send(kind::WINDOW_UPDATE, 0, 0, &[0; 5])
    }),
    fatal("6.9.1", "the connection's window beyond 2^31 - 1", FLOW_CONTROL_ERROR, |t| {
        t.begin()?;
        t.send(kind::WINDOW_UPDATE, 0, 0, &i32::MAX.to_be_bytes())
    }),
    resets("6.9.1", "a stream's window beyond 2^31 - 1", FLOW_CONTROL_ERROR, |t| {
        let id = t.begin()?;
        t.send(kind::WINDOW_UPDATE, 0, id, &i32::MAX.to_be_bytes())
    }),
    fatal("6.9.2", "settings that make a stream's window overflow", FLOW_CONTROL_ERROR, |t| {
        let id = t.begin()?;
        t.send(kind::WINDOW_UPDATE, 0, id, &(i32::MAX - 65_535).to_be_bytes())?;
        t.settings(&[(4, 65_536)])
    }),
    Peer {
        failures: &[&[(HttpProtocol, Receiving)]],
        ..resets("6.9.1", "more DATA than the stream's window", FLOW_CONTROL_ERROR, |t| {
            let id = t.begin()?;
            t.head(id, &[])?;
            t.send(kind::DATA, 0, id, &[0; 11])
        })
    }
    .with(&["--window", "10"]),
    Peer {
        reaction: WidensWindows,
        ..fine("6.9", "windows are widened as DATA is read", |t| {
            let id = t.begin()?;
            t.head(id, &[])?;
            for _ in 0..2 {
                for _ in 0..3 {
                    t.send(kind::DATA, 0, id, &[0; 16_384])?;
                }
                t.until(kind::WINDOW_UPDATE)?;
                t.until(kind::WINDOW_UPDATE)?;
            }
            t.body(id, b"ok")
        })
    }
    .with(&["--connection-window", "65535", "--window", "65535"]),
    Peer {
        failures: &[&[(Timeout, Sending)]],
        ..resets("6.9.1", "a body larger than a window that is never widened", CANCEL, |t| {
            t.settings(&[])?;
            t.request_head()?;
            t.read_data(WINDOW_BYTES)?;
            if t.next_but_settings()?.kind != kind::RST_STREAM {
                return t.complain("more than the window");
            }
            t.open_windows()
        })
    }
    .with(&["-X", "POST", "--body-file", BODY_FILE]),
    fine("6.9.1", "a body that is sent as the windows are widened", |t| {
        t.settings(&[])?;
        let id = t.request_head()?;
        let (mut sent, mut allowed) = (0, WINDOW_BYTES);
        while sent < BODY_BYTES {
            let bytes = t.until(kind::DATA)?.payload.len();
            sent += bytes;
            if sent > allowed {
                return t.complain("more than the window");
            }
            allowed += bytes;
            t.send(kind::WINDOW_UPDATE, 0, 0, &(bytes as u32).to_be_bytes())?;
            t.send(kind::WINDOW_UPDATE, 0, id, &(bytes as u32).to_be_bytes())?;
        }
        t.open_windows()?;
        t.respond(id)
    })
    .with(&["-X", "POST", "--body-file", BODY_FILE]),
    fine("6.9.2", "settings that make a stream's window negative", |t| {
        t.settings(&[])?;
        let id = t.request_head()?;
        t.read_data(WINDOW_BYTES)?;
        // The window is used up. Now it is 65,535 below nothing, then at nothing, and then one byte fits.
        t.settings(&[(4, 0)])?;
        t.send(kind::WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes())?;
        t.send(kind::WINDOW_UPDATE, 0, id, &(WINDOW_BYTES as u32).to_be_bytes())?;
        t.send(kind::PING, 0, 0, &[0; 8])?;
        if t.next_but_settings()?.kind != kind::PING {
            return t.complain("a body goes on although its window is empty");
        }
        t.send(kind::WINDOW_UPDATE, 0, id, &1_u32.to_be_bytes())?;
        if t.until(kind::DATA)?.payload.len() != 1 {
            return t.complain("another length than the window allows");
        }
        t.settings(&[(4, 1 << 30)])?;
        t.read_data(BODY_BYTES - WINDOW_BYTES - 1)?;
        t.respond(id)
    })
    .with(&["-X", "POST", "--body-file", BODY_FILE]),
    // Messages.
    malformed("8.1", "DATA before the head", |t| {
        let id = t.begin()?;
        t.body(id, b"x")
    }),
    fine("8.1", "interim responses before the final one", |t| {
        let id = t.begin()?;
        t.send(kind::HEADERS, END_HEADERS, id, &status(b"100"))?;
        t.send(kind::HEADERS, END_HEADERS, id, &status(b"103"))?;
        t.respond(id)
    }),
    malformed("8.1", "an interim response that ends the stream", |t| {
        let id = t.begin()?;
        t.send(kind::HEADERS, END_HEADERS | END_STREAM, id, &status(b"103"))
    }),
    malformed("8.6", "status 101", |t| {
        let id = t.begin()?;
        t.send(kind::HEADERS, END_HEADERS, id, &status(b"101"))
    }),
    Peer {
        failures: &[&[(HttpProtocol, Receiving)]],
        ..malformed("8.1", "interim responses without end", |t| {
            let id = t.begin()?;
            for _ in 0..100 {
                t.send(kind::HEADERS, END_HEADERS, id, &status(b"103"))?;
            }
            Ok(())
        })
    },
    fine("8.1", "trailers", |t| {
        let id = t.begin()?;
        t.head(id, &[])?;
        t.send(kind::DATA, 0, id, b"ok")?;
        t.send(kind::HEADERS, END_HEADERS | END_STREAM, id, &[0, 1, b'a', 1, b'b'])
    }),
    malformed_in_body("8.1", "trailers that do not end the stream", |t| {
        let id = t.begin()?;
        t.head(id, &[])?;
        t.send(kind::HEADERS, END_HEADERS, id, &[0, 1, b'a', 1, b'b'])
    }),
    malformed_in_body("8.1", "trailers with a pseudo-header field", |t| {
        let id = t.begin()?;
        t.head(id, &[])?;
        t.send(kind::HEADERS, END_HEADERS | END_STREAM, id, &[0x88])
    }),
    Peer {
        reaction: ResetsStream(NO_ERROR),
        ..fine("8.1", "a whole answer before the body is sent", |t| {
            t.settings(&[])?;
            let id = t.request_head()?;
            t.read_data(WINDOW_BYTES)?;
            t.respond(id)?;
            t.send(kind::RST_STREAM, 0, id, &NO_ERROR.to_be_bytes())?;
            t.open_windows()
        })
    }
    .with(&["-X", "POST", "--body-file", BODY_FILE]),
    malformed("8.2", "a field name in capitals", |t| {
        let id = t.begin()?;
        t.head(id, &[0, 1, b'A', 1, b'b'])
    }),
    malformed("8.2.1", "a field name with a space", |t| {
        let id = t.begin()?;
        t.head(id, &[0, 1, b' ', 1, b'b'])
    }),
    malformed("8.2.1", "a field without a name", |t| {
        let id = t.begin()?;
        t.head(id, &[0, 0, 1, b'b'])
    }),
    malformed("8.2.1", "a field value with a line end", |t| {
        let id = t.begin()?;
        t.head(id, &[0, 1, b'a', 3, b'b', b'\n', b'c'])
    }),
    malformed("8.2.1", "a field value that begins with a space", |t| {
        let id = t.begin()?;
        t.head(id, &[0, 1, b'a', 2, b' ', b'b'])
    }),
    malformed("8.2.2", "a field about the connection", |t| {
        let id = t.begin()?;
        t.head(id, b"\x00\x0aconnection\x05close")
    }),
    malformed("8.2.2", "a transfer coding", |t| {
        let id = t.begin()?;
        t.head(id, b"\x0f\x2a\x07chunked")
    }),
    malformed("8.3", "a pseudo-header field after another field", |t| {
        let id = t.begin()?;
        t.send(kind::HEADERS, END_HEADERS | END_STREAM, id, &[0, 1, b'a', 1, b'b', 0x88])
    }),
    malformed("8.3", "a pseudo-header field of requests", |t| {
        let id = t.begin()?;
        t.head(id, &[0x82])
    }),
    malformed("8.3", "a pseudo-header field that does not exist", |t| {
        let id = t.begin()?;
        t.head(id, &[0, 2, b':', b'x', 1, b'b'])
    }),
    malformed("8.3.2", "no :status", |t| {
        let id = t.begin()?;
        t.send(kind::HEADERS, END_HEADERS | END_STREAM, id, &[0, 1, b'a', 1, b'b'])
    }),
    malformed("8.3.2", ":status twice", |t| {
        let id = t.begin()?;
        t.head(id, &[0x88])
    }),
    malformed("8.3.2", ":status in words", |t| {
        let id = t.begin()?;
        t.send(kind::HEADERS, END_HEADERS | END_STREAM, id, &status(b"two"))
    }),
    malformed_in_body("8.1.1", "a body shorter than content-length", |t| {
        let id = t.begin()?;
        t.head(id, &[0x0f, 0x0d, 1, b'3'])?;
        t.body(id, b"ok")
    }),
    malformed_in_body("8.1.1", "a body longer than content-length", |t| {
        let id = t.begin()?;
        t.head(id, &[0x0f, 0x0d, 1, b'1'])?;
        t.body(id, b"ok")
    }),
    malformed("8.1.1", "content-length in words", |t| {
        let id = t.begin()?;
        t.head(id, &[0x0f, 0x0d, 1, b'x'])
    }),
    malformed("8.1.1", "two different lengths", |t| {
        let id = t.begin()?;
        t.head(id, &[0x0f, 0x0d, 1, b'1', 0x0f, 0x0d, 1, b'2'])
    }),
    fine("8.1.1", "the length of a body that HEAD does not send", |t| {
        let id = t.begin()?;
        t.send(kind::HEADERS, END_HEADERS | END_STREAM, id, &[0x88, 0x0f, 0x0d, 1, b'9'])?;
        for _ in 0..2 {
            let id = t.request()?;
            t.send(kind::HEADERS, END_HEADERS | END_STREAM, id, &[0x88])?;
        }
        Ok(())
    })
    .with(&["-X", "HEAD"]),
    malformed_in_body("8.1.1", "a body after status 204", |t| {
        let id = t.begin()?;
        t.send(kind::HEADERS, END_HEADERS, id, &[0x89])?;
        t.body(id, b"ok")
    }),
    // The end.
    Peer {
        failures: &[&[(ConnectionClosed, Receiving)]],
        connection_count: 2,
        ..fine("9.1", "the connection ends within an answer", |t| {
            let id = t.begin()?;
            t.head(id, &[])?;
            t.send(kind::DATA, 0, id, b"o")?;
            t.close()
        })
    },
    Peer {
        connection_count: 2,
        ..fine("9.1", "the connection ends between two requests", |t| {
            let id = t.begin()?;
            t.respond(id)?;
            t.close()
        })
    },
];

impl Peer {
    const fn with(self, args: &'static [&'static str]) -> Self {
        Self { args, ..self }
    }
}

/// Nothing is wrong with it.
const fn fine(section: &'static str, name: &'static str, script: Script) -> Peer {
    Peer { section, name, script, args: &[], reaction: None, failures: &[&[]], connection_count: 1 }
}

/// It breaks the connection, before the first answer.
const fn fatal(section: &'static str, name: &'static str, code: u32, script: Script) -> Peer {
    let failures: Failures = &[&[(HttpProtocol, Waiting)]];
    Peer { reaction: EndsConnection(code), failures, connection_count: 2, ..fine(section, name, script) }
}

/// It breaks the connection within the first answer's body.
const fn fatal_in_body(section: &'static str, name: &'static str, code: u32, script: Script) -> Peer {
    Peer { failures: &[&[(HttpProtocol, Receiving)]], ..fatal(section, name, code, script) }
}

/// It breaks its stream, before the answer; the connection goes on.
const fn resets(section: &'static str, name: &'static str, code: u32, script: Script) -> Peer {
    let failures: Failures = &[&[(HttpProtocol, Waiting)]];
    Peer { reaction: ResetsStream(code), failures, ..fine(section, name, script) }
}

/// Its answer is malformed; the connection goes on.
const fn malformed(section: &'static str, name: &'static str, script: Script) -> Peer {
    resets(section, name, PROTOCOL_ERROR, script)
}

/// Its answer turns out to be malformed after the head.
const fn malformed_in_body(section: &'static str, name: &'static str, script: Script) -> Peer {
    Peer { failures: &[&[(HttpProtocol, Receiving)]], ..malformed(section, name, script) }
}

/// `:status` as a literal.
fn status(value: &[u8; 3]) -> Vec<u8> {
    [&[0x08, 3][..], value].concat()
}

/// In [`Peer::args`]: the path of a file of [`BODY_BYTES`].
pub const BODY_FILE: &str = "{BODY_FILE}";

/// More than the initial window, and less than twice as much.
pub const BODY_BYTES: usize = 100_000;

/// The window of a stream and of a connection unless settings say otherwise.
const WINDOW_BYTES: usize = 65_535;
