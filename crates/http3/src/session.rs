//! One connection, and what its streams share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Request;
use quinn::{ConnectionError, Incoming, ReadError, RecvStream, SendStream, WriteError};
use squall_wire::ErrorCode;
use squall_wire::h3::server::{RequestError, SectionReader, UniStreams};
use squall_wire::h3::{Error, Setup, StreamAbort};

use crate::request::{RequestBody, RequestFault, RequestReader, code_of};
use crate::response::{H3_INTERNAL_ERROR, respond};
use crate::{Service, limits};

struct Session<S> {
    quic: quinn::Connection,
    service: Arc<S>,
    control: Mutex<UniStreams>,
    sections: Mutex<SectionReader>,
}

/// Serves a connection until it ends. Early data is served as it comes.
pub async fn serve<S: Service>(incoming: Incoming, service: Arc<S>) {
    let Ok(connecting) = incoming.accept() else { return service.note_handshake(false) };
    let Ok((quic, handshake)) = connecting.into_0rtt() else { return };
    let has_extended_connect = service.has_extended_connect();
    let setup = Setup { has_extended_connect, ..Setup::new(limits::STREAM_COUNT_MAX) };
    let control = Mutex::new(UniStreams::new(setup));
    let session = Arc::new(Session { quic, service, control, sections: Mutex::default() });
    tokio::spawn({
        let session = Arc::clone(&session);
        async move {
            session.note_handshake(handshake).await;
            session.keep_control_open().await;
        }
    });
    let error = session.run().await;
    if let Some(error) = error {
        session.quic.close(code_of(error.code), error.text.as_bytes());
    }
}

impl<S: Service> Session<S> {
    async fn note_handshake(&self, handshake: quinn::ZeroRttAccepted) {
        let is_late = tokio::time::timeout(self.service.head_timeout(), handshake).await.is_err();
        if is_late {
            self.quic.close(code_of(ErrorCode::H3_NO_ERROR), b"the handshake took too long");
        }
        // A client may close as soon as its own side is done; it can say so only with the keys of a handshake that succeeded.
        let has_failed = match self.quic.close_reason() {
            None | Some(ConnectionError::ApplicationClosed(_)) => false,
            Some(_) => self.quic.stats().frame_tx.handshake_done == 0,
        };
        self.service.note_handshake(!has_failed);
    }

    /// Accepts streams until the connection ends, or the client breaks a rule.
    async fn run(self: &Arc<Self>) -> Option<Error> {
        let (fail, mut failed) = tokio::sync::mpsc::channel(1);
        loop {
            tokio::select! {
                stream = self.quic.accept_bi() => {
                    let Ok((send, recv)) = stream else { return None };
                    let (session, fail) = (Arc::clone(self), fail.clone());
                    tokio::spawn(async move {
                        if let Err(error) = session.serve_request(send, recv).await {
                            fail.try_send(error).ok();
                        }
                    });
                }
                stream = self.quic.accept_uni() => {
                    let Ok(recv) = stream else { return None };
                    let (session, fail) = (Arc::clone(self), fail.clone());
                    tokio::spawn(async move {
                        if let Err(error) = session.read_uni(recv).await {
                            fail.try_send(error).ok();
                        }
                    });
                }
                error = failed.recv() => return error,
            }
        }
    }

    /// Called after the handshake: quinn does not wake what waits for the client's limits before, as it does where they come with the
    /// second datagram of a ClientHello. Post-quantum keys need two.
    async fn keep_control_open(&self) {
        // Kept for as long as the connection: its end would be an error.
        if let Ok(_control) = self.open_control().await {
            self.quic.closed().await;
        }
    }

    async fn open_control(&self) -> Result<SendStream, WriteError> {
        let mut stream = self.quic.open_uni().await.map_err(WriteError::ConnectionLost)?;
        let id = u64::from(stream.id());
        let settings = self.control().uni_output(id).to_vec();
        stream.write_all(&settings).await?;
        self.control().uni_sent(id, settings.len());
        Ok(stream)
    }

    fn control(&self) -> MutexGuard<'_, UniStreams> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read_uni(&self, mut recv: RecvStream) -> Result<(), Error> {
        let id = u64::from(recv.id());
        loop {
            let read = recv.read_chunk(usize::MAX, true).await;
            let is_over = !matches!(read, Ok(Some(_)));
            let stop = match read {
                Ok(Some(chunk)) => decode_uni(&mut self.control(), id, (&chunk.bytes, false)),
                Ok(None) => decode_uni(&mut self.control(), id, (&[], true)),
                Err(ReadError::Reset(_)) => self.control().handle_reset(id).map(|()| None),
                Err(_) => Ok(None),
            }?;
            if let Some(why) = stop {
                recv.stop(code_of(why)).ok();
                return Ok(());
            }
            if is_over {
                return Ok(());
            }
        }
    }

    /// Reads a request, and answers it while its body comes.
    async fn serve_request(&self, mut send: SendStream, recv: RecvStream) -> Result<(), Error> {
        let mut reader = RequestReader::new(recv, &self.sections);
        let served = match tokio::time::timeout(self.service.head_timeout(), reader.request()).await {
            Ok(Ok((request, body))) => {
                let mut exchange = std::pin::pin!(exchange(&self.service, &mut send, request));
                tokio::select! {
                    served = &mut exchange => served,
                    fed = reader.feed(body) => match fed {
                        Ok(()) => exchange.await,
                        // The response may be complete without the rest.
                        Err(RequestFault::Gone) => exchange.await.map_err(|_| RequestFault::Gone),
                        Err(fault) => Err(fault),
                    },
                }
            }
            Ok(Err(fault)) => Err(fault),
            Err(_) => Err(RequestFault::stream(ErrorCode::H3_REQUEST_INCOMPLETE)),
        };
        let (why, result) = match served {
            Ok(()) => (ErrorCode::H3_NO_ERROR, Ok(())),
            Err(RequestFault::Rule(RequestError::Connection(error))) => (error.code, Err(error)),
            Err(RequestFault::Rule(RequestError::Stream { code, .. })) => (code, Ok(())),
            Err(RequestFault::Gone) => (ErrorCode::H3_REQUEST_CANCELLED, Ok(())),
        };
        reader.stop(why);
        if served.is_err() {
            // It may have ended already.
            send.reset(code_of(why)).ok();
        }
        result
    }
}

/// Reads bytes of one of the client's streams; `Some`: the stream is refused, with this code. That is the only command a client's stream leads
/// to, and all streams share one queue of commands: the borrow must last until the command is taken, or the task of another stream takes it.
fn decode_uni(
    control: &mut UniStreams,
    stream_id: u64,
    input: (&[u8], bool),
) -> Result<Option<ErrorCode>, Error> {
    control.decode_stream(stream_id, input)?;
    Ok(match control.next_command() {
        Some(StreamAbort::StopSending { stream_id: stopped_id, code }) if stopped_id == stream_id => {
            Some(code)
        }
        _ => None,
    })
}

async fn exchange<S: Service>(
    service: &Arc<S>,
    send: &mut SendStream,
    request: Request<RequestBody>,
) -> Result<(), RequestFault> {
    let response = {
        let stopped = send.stopped();
        tokio::select! {
            response = Arc::clone(service).answer(request) => response,
            // The client has given up, or is gone.
            _ = stopped => None,
        }
    };
    match response {
        Some(response) => respond(send, response).await,
        None => Err(RequestFault::stream(ErrorCode(H3_INTERNAL_ERROR))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_reach_the_streams_that_are_refused_while_others_are_read() {
        let control = Mutex::new(UniStreams::new(Setup::new(1)));
        let decode = |stream_id, input: &[u8]| {
            decode_uni(&mut control.lock().unwrap(), stream_id, (input, false)).unwrap()
        };
        // A control stream with empty settings.
        assert_eq!(decode(2, &[0x00, 0x04, 0x00]), None);
        std::thread::scope(|threads| {
            for first in [6, 10] {
                threads.spawn(move || {
                    for round in 0..5_000 {
                        // Of a kind that is reserved for greasing.
                        let stop = decode(first + 8 * round, &[0x21]);
                        assert_eq!(stop, Some(ErrorCode::H3_STREAM_CREATION_ERROR));
                    }
                });
            }
            // MAX_PUSH_ID, which may be repeated.
            (0..5_000).for_each(|_| assert_eq!(decode(2, &[0x0d, 0x01, 0x00]), None));
        });
    }
}
