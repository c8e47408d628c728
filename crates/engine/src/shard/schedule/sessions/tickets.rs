//! Sessions to resume: a shard's stock, filled by every handshake, and used by those that are meant to resume.
//!
//! Owns: tickets and ids by server name. A ticket of TLS 1.3 is used once (RFC 8446 C.4); a session of TLS 1.2 again and again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls12Resumption, Tls13ClientSessionValue,
};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, NamedGroup};
use squall_plan::ResumptionMode;
use squall_plan::limits::TICKET_COUNT_MAX;

/// The settings of handshakes that resume, and of those that only fill the stock.
pub(super) struct Configs {
    resuming: Arc<ClientConfig>,
    fresh: Arc<ClientConfig>,
    stock: Arc<Stock>,
    ratio: f64,
    /// What the ratio has added up to: at 1, a handshake resumes.
    owed: f64,
}

/// What one server name has to offer.
#[derive(Debug, Default)]
struct Offer {
    group: Option<NamedGroup>,
    session: Option<Tls12ClientSessionValue>,
    tickets: VecDeque<Tls13ClientSessionValue>,
}

/// All that can be resumed. A shard's own, so its lock is never waited for.
#[derive(Debug, Default)]
struct Stock(Mutex<HashMap<ServerName<'static>, Offer>>);

/// A view of the stock; one that does not offer makes full handshakes.
#[derive(Debug)]
struct View {
    stock: Arc<Stock>,
    offers: bool,
    /// Sessions of TLS 1.2 are kept, too.
    keeps_tls12: bool,
}

impl Configs {
    /// The settings of a shard, made of those of the load.
    pub(super) fn new(base: &Arc<ClientConfig>, resumption: &squall_plan::Resumption) -> Self {
        let stock = Arc::new(Stock::default());
        let with = |offers| match tls12(resumption.mode) {
            None => Arc::clone(base),
            Some(tls12) => {
                let mut config = ClientConfig::clone(base);
                let keeps_tls12 = resumption.mode != ResumptionMode::Psk;
                let view = Arc::new(View { stock: Arc::clone(&stock), offers, keeps_tls12 });
                config.resumption = Resumption::store(view).tls12_resumption(tls12);
                config.enable_early_data = offers && resumption.early_data;
                Arc::new(config)
            }
        };
        Self { resuming: with(true), fresh: with(false), stock, ratio: resumption.ratio, owed: 0.0 }
    }

    /// The settings of the next handshake, and whether it is meant to resume.
    pub(super) fn next(&mut self) -> (Arc<ClientConfig>, bool) {
        self.owed += self.ratio;
        let resumes = self.owed >= 1.0 - f64::EPSILON;
        if resumes {
            self.owed -= 1.0;
        }
        (Arc::clone(if resumes { &self.resuming } else { &self.fresh }), resumes)
    }

    /// How many handshakes with this server can still be resumed.
    pub(super) fn stock_count(&self, name: &ServerName<'static>) -> usize {
        let stock = self.stock.lock();
        let offer = stock.get(name);
        offer.map_or(0, |offer| if offer.session.is_some() { usize::MAX } else { offer.tickets.len() })
    }
}

/// How TLS 1.2 resumes; `None`: nothing is resumed at all.
fn tls12(mode: ResumptionMode) -> Option<Tls12Resumption> {
    match mode {
        ResumptionMode::Off => None,
        ResumptionMode::Id => Some(Tls12Resumption::SessionIdOnly),
        ResumptionMode::Ticket => Some(Tls12Resumption::SessionIdOrTickets),
        ResumptionMode::Psk => Some(Tls12Resumption::Disabled),
    }
}

impl Stock {
    fn lock(&self) -> MutexGuard<'_, HashMap<ServerName<'static>, Offer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for View {
    fn set_kx_hint(&self, server_name: ServerName<'static>, group: NamedGroup) {
        self.stock.lock().entry(server_name).or_default().group = Some(group);
    }

    /// A new client knows nothing of the server.
    fn kx_hint(&self, server_name: &ServerName<'_>) -> Option<NamedGroup> {
        let stock = self.stock.lock();
        stock.get(&server_name.to_owned()).filter(|_| self.offers)?.group
    }

    fn set_tls12_session(&self, server_name: ServerName<'static>, value: Tls12ClientSessionValue) {
        if self.keeps_tls12 {
            self.stock.lock().entry(server_name).or_default().session = Some(value);
        }
    }

    fn tls12_session(&self, server_name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        let stock = self.stock.lock();
        stock.get(&server_name.to_owned()).filter(|_| self.offers)?.session.clone()
    }

    fn remove_tls12_session(&self, server_name: &ServerName<'static>) {
        if let Some(offer) = self.stock.lock().get_mut(server_name) {
            offer.session = None;
        }
    }

    fn insert_tls13_ticket(&self, server_name: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut stock = self.stock.lock();
        let tickets = &mut stock.entry(server_name).or_default().tickets;
        // The oldest expires first.
        if tickets.len() >= TICKET_COUNT_MAX {
            tickets.pop_front();
        }
        tickets.push_back(value);
    }

    fn take_tls13_ticket(&self, server_name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.stock.lock().get_mut(server_name).filter(|_| self.offers)?.tickets.pop_front()
    }
}
