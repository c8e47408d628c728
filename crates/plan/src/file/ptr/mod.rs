//! PTR configuration files: a target, its generators and a sequence of scenarios for one of five drivers. Each file becomes a plan;
//! several together become one plan whose steps run side by side.
//!
//! Owns: the keys of a file and what they mean. `driver` has the keys of each driver, `fields` reads single values.
//! Never: knows what squall's own flags accept; that is checked where the plan is read.

mod driver;
mod fields;
mod write;

use std::num::NonZeroU32;
use std::time::Duration;

pub use self::fields::PtrOptions;
pub use self::write::ptr_plan_text;

use self::driver::{Common, Driver};
use self::fields::{Fields, Reader, Unit};
use super::document::{self, Node, Value};
use super::read::{destination_port, parse_mode};
use super::{FileSpec, LoadSpec, Machine, MachineSettings, PlanFile, Problem, Reach, SshSpec, Step, Text};

/// A PTR file.
#[derive(Debug, Clone)]
pub struct PtrFile {
    /// Its content.
    pub text: String,
    /// What is put before its relative paths: its folder; empty where they are relative to the plan's folder, too.
    pub folder: String,
}

/// Whether a text is such a file, by the keys at its top.
pub fn is_ptr(text: &str) -> bool {
    let Some(Node { value: Value::Map(entries), .. }) = document::parse(text, &mut Vec::new()) else {
        return false;
    };
    entries
        .iter()
        .any(|(key, _)| ["generator_driver", "generator_hosts", "scenarios"].contains(&key.value.as_str()))
}

/// Reads files that run at the same time.
///
/// # Errors
/// All that is wrong, with the number of the file.
pub fn parse_ptr(files: &[PtrFile], options: &PtrOptions) -> Result<PlanFile, Vec<(usize, Problem)>> {
    let (mut plan, mut problems) = (PlanFile::default(), Vec::new());
    for (file_idx, file) in files.iter().enumerate() {
        let prefix = if files.len() > 1 { format!("{}: ", file_idx + 1) } else { String::new() };
        let mut found = Vec::new();
        if let Some(root) = document::parse(&file.text, &mut found) {
            Reader { options, folder: &file.folder, problems: &mut found, prefix }.file(&root, &mut plan);
        }
        problems.extend(found.into_iter().map(|problem| (file_idx, problem)));
    }
    // Nothing follows the last scenario that could need the pause.
    if let Some(last) = plan.steps.last_mut() {
        last.pause = Duration::ZERO;
    }
    if problems.is_empty() { Ok(plan) } else { Err(problems) }
}

impl Reader<'_> {
    fn file(&mut self, root: &Node, plan: &mut PlanFile) {
        let Some(fields) = self.fields(root, "a PTR file", FILE_KEYS) else { return };
        let driver = self.driver(&fields);
        let pause = self.pause(&fields);
        let on = self.machines(&fields, plan);
        let files = self.files(&fields, &on, plan);
        let target = self.optional(&fields, "target_host");
        let scenarios = self.list(&fields, "scenarios");
        if scenarios.is_empty() {
            self.problem(fields.place, "there is no scenario", "give `scenarios` at least one entry");
        }
        // Without a driver no key of a scenario has a meaning.
        let Some(driver) = driver else { return };
        let common = Common { driver, target, on, files };
        for (idx, node) in scenarios.into_iter().enumerate() {
            let Some((name, load)) = self.scenario(node, &common, plan, idx) else { continue };
            if plan.steps.len() <= idx {
                let name = free(&name, |name| plan.steps.iter().any(|step| step.name == name));
                plan.steps.push(Step { name, ..Step::default() });
            }
            let step = &mut plan.steps[idx];
            step.loads.push(load);
            step.pause = step.pause.max(pause);
        }
    }

    fn pause(&mut self, fields: &Fields<'_>) -> Duration {
        let text = self.duration(fields, "pause", Unit::Seconds);
        text.and_then(|text| crate::units::parse_duration(&text.value).ok()).unwrap_or_default()
    }

    fn driver(&mut self, fields: &Fields<'_>) -> Option<Driver> {
        let name = self.text(fields, "generator_driver")?;
        let driver = Driver::of(&name.value);
        if driver.is_none() {
            let known = Driver::ALL.map(Driver::name);
            let help = super::read::suggestion(&name.value.to_ascii_lowercase(), &known, "drivers");
            self.problem(name.place, format!("unknown driver `{}`", name.value), help);
        }
        driver
    }

    /// Generators, each one machine of the plan however many files name it; without any, this machine.
    fn machines(&mut self, fields: &Fields<'_>, plan: &mut PlanFile) -> Vec<Text> {
        let mut on = Vec::new();
        for node in self.list(fields, "generator_hosts") {
            let Some(host) = self.scalar(node) else { continue };
            let Some((address, port)) = self.address(&host) else { continue };
            let spec = SshSpec {
                host: address,
                user: self.options.user.clone(),
                port: Some(port),
                key: self.options.key.clone(),
                jump: self.options.bastion.clone(),
                config: self.options.config.clone(),
                ..SshSpec::default()
            };
            if plan.machine(&host.value).is_none() {
                plan.machines.push(Machine {
                    name: host.clone(),
                    reach: Reach::Ssh(spec),
                    weight: NonZeroU32::MIN,
                    settings: MachineSettings::default(),
                });
            }
            on.push(host);
        }
        on
    }

    /// `host`, `host:port`, an IPv6 address, or one in brackets with a port.
    fn address(&mut self, host: &Text) -> Option<(String, u16)> {
        match destination_port(&host.value) {
            Ok((address, port)) => {
                let address = address.trim_start_matches('[').trim_end_matches(']');
                Some((address.to_owned(), port.unwrap_or(SSH_PORT)))
            }
            Err(error) => {
                let message = format!("`generator_hosts: {}`: {}", host.value, error.reason);
                self.problem(host.place, message, error.help);
                None
            }
        }
    }

    /// Files for the generators; what another PTR file has named is in the plan already.
    fn files(&mut self, fields: &Fields<'_>, on: &[Text], plan: &mut PlanFile) -> Vec<FileSpec> {
        let nodes = self.list(fields, "files_to_generator_hosts").into_iter();
        let files: Vec<FileSpec> = nodes.filter_map(|node| self.copied(node, on)).collect();
        for file in &files {
            let known = plan.files.iter_mut().find(|known| known.to.value == file.to.value);
            match known.filter(|known| known.from.value == file.from.value && known.mode == file.mode) {
                Some(known) => {
                    let new = file.on.iter().filter(|name| !names(&known.on, name)).cloned();
                    let new: Vec<Text> = new.collect();
                    known.on.extend(new);
                }
                None => plan.files.push(file.clone()),
            }
        }
        files
    }

    fn copied(&mut self, node: &Node, on: &[Text]) -> Option<FileSpec> {
        let fields = self.fields(node, "a file", &["local_path", "remote_addr", "file_permission"])?;
        let (from, mut to) = (self.text(&fields, "local_path")?, self.text(&fields, "remote_addr")?);
        let from = self.local(from);
        // `host:/path`, as scp has it.
        if let Some((_, path)) = to.value.split_once(":/") {
            to.value = format!("/{path}");
        }
        let mode = match self.optional(&fields, "file_permission") {
            None => 0o644,
            Some(text) => parse_mode(&text.value)
                .map_err(|error| {
                    let message = format!("`file_permission: {}`: {}", text.value, error.reason);
                    self.problem(text.place, message, error.help);
                })
                .ok()?,
        };
        Some(FileSpec { from, to, mode, on: on.to_vec(), overwrite: true })
    }

    fn scenario(
        &mut self,
        node: &Node,
        common: &Common,
        plan: &PlanFile,
        idx: usize,
    ) -> Option<(String, LoadSpec)> {
        let fields = self.fields(node, "a scenario", &["desc", "target_file", "generator_config"])?;
        let desc = self.optional(&fields, "desc").filter(|desc| !desc.value.is_empty());
        let name = desc.map_or_else(|| format!("scenario {}", idx + 1), |text| text.value);
        let file = self.optional(&fields, "target_file").filter(|file| !file.value.is_empty());
        let empty = Node { place: fields.place, value: Value::Map(Vec::new()) };
        let config = fields.get("generator_config").unwrap_or(&empty);
        let what = format!("`generator_config` of {}", common.driver.name());
        let config = self.fields(config, &what, common.driver.keys())?;
        let wanted = format!("{}{name}", self.prefix);
        let mut load = LoadSpec {
            name: free(&wanted, |name| plan.loads().any(|load| load.name == name)),
            kind: Text { value: String::new(), place: fields.place },
            arguments: Vec::new(),
            options: Vec::new(),
            on: common.on.clone(),
            per_machine: !self.options.divide,
            is_whole: true,
            start_after: Duration::ZERO,
            thresholds: Vec::new(),
        };
        self.drive(&mut load, &config, common, file);
        Some((name, load))
    }

    /// A path of this machine, relative to the file that names it.
    fn local(&self, path: Text) -> Text {
        if self.folder.is_empty() || path.value.starts_with('/') {
            return path;
        }
        Text { value: format!("{}/{}", self.folder.trim_end_matches('/'), path.value), ..path }
    }
}

/// A name that is not taken: with a number where it is.
fn free(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number| format!("{name} ({number})"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| !is_taken(name)).unwrap_or_default()
}

fn names(texts: &[Text], name: &Text) -> bool {
    texts.iter().any(|text| text.value == name.value)
}

const FILE_KEYS: &[&str] =
    &["target_host", "generator_hosts", "generator_driver", "pause", "files_to_generator_hosts", "scenarios"];

const SSH_PORT: u16 = 22;

#[cfg(test)]
mod tests;
