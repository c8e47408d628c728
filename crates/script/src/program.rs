//! A script with all that it imports, compiled once: what every virtual user of a process is made from.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value as Json;
use squall_plan::files;
use squall_plan::limits::OPENED_FILE_BYTES_MAX;

use crate::callee::callees_at;
use crate::console::Console;
use crate::loading::LoadError;
use crate::metrics::{BUILTINS, MetricDef, MetricId};
use crate::options::{Layer, LayerKind};
use crate::resolve::{file_path, file_url};
use crate::step::ClientConfig;
use crate::vm::Code;

/// A compiled script.
#[derive(Debug)]
pub struct Program {
    entry: String,
    pub(crate) modules: HashMap<String, Compiled>,
    files: HashMap<String, Arc<[u8]>>,
    arrays: Arrays,
    metrics: Vec<MetricDef>,
    clients: Vec<ClientConfig>,
    options: Json,
    functions: BTreeSet<String>,
    env: BTreeMap<String, String>,
    unknown: Unknown,
    texts: Texts,
    callees: Callees,
}

/// The JavaScript of each module, for what is said of its errors.
pub(crate) type Texts = HashMap<String, Arc<str>>;

/// What is called at places that were asked for.
type Callees = Mutex<HashMap<Place, Arc<[String]>>>;

/// A place in a module, line and column from 1.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Of a file: modules of k6 and CommonJS modules, and a name that it imports from each and that the module may lack. It is `undefined`
/// then, as in k6.
pub(crate) type Unknown = HashMap<String, Vec<(String, String)>>;

/// What a program is made from.
pub struct ProgramSetup {
    /// The script's path, by which its imports are found.
    pub path: PathBuf,
    /// Its text, where it does not come from the path (stdin).
    pub text: Option<String>,
    /// `__ENV`.
    pub env: BTreeMap<String, String>,
    /// Gets modules over the network; `None`: there is none.
    pub fetch: Option<Fetch>,
    /// Where the script's console goes.
    pub console: Arc<Console>,
}

/// Gets the text behind an `https://` URL, or says why not.
pub type Fetch = Box<dyn Fn(&str) -> Result<String, String>>;

/// Data of each `SharedArray` by name.
pub(crate) type Arrays = Arc<Mutex<HashMap<String, Arc<ArrayData>>>>;

/// The elements of a `SharedArray`, each as JSON.
#[derive(Debug)]
pub(crate) struct ArrayData(pub(crate) Vec<Box<str>>);

/// A compiled module.
#[derive(Debug, Clone)]
pub(crate) enum Compiled {
    /// ES module; whether its text has an `import.meta`.
    Module { code: Code, uses_meta: bool },
    /// CommonJS: a function of module, exports and require.
    Common(Code),
}

/// Where a virtual user's modules and files come from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// The first world: from disk and network, and remembered.
    Building(Rc<Building>),
    /// All others.
    Built(Arc<Program>),
}

/// What the first world gathers.
pub(crate) struct Building {
    pub(crate) entry: String,
    pub(crate) entry_text: Option<String>,
    env: BTreeMap<String, String>,
    pub(crate) fetch: Option<Fetch>,
    pub(crate) modules: RefCell<HashMap<String, Compiled>>,
    files: RefCell<HashMap<String, Arc<[u8]>>>,
    arrays: Arrays,
    metrics: RefCell<Vec<MetricDef>>,
    clients: RefCell<Vec<ClientConfig>>,
    exports: RefCell<(Json, BTreeSet<String>)>,
    /// Imports in the order in which they were resolved.
    pub(crate) imports: RefCell<Vec<Import>>,
    pub(crate) unknown: RefCell<Unknown>,
    /// Modules that were looked at: whether each is CommonJS.
    pub(crate) kinds: RefCell<HashMap<String, bool>>,
    pub(crate) texts: RefCell<Texts>,
}

/// What an import statement says.
pub(crate) struct Import {
    /// The module that has it.
    pub(crate) base: String,
    pub(crate) specifier: String,
    /// The full name that it leads to; empty: nowhere.
    pub(crate) resolved: String,
}

impl std::fmt::Debug for Building {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Building").field("entry", &self.entry).finish_non_exhaustive()
    }
}

impl Program {
    /// The `options` that the script exports; null when it exports none.
    pub fn options(&self) -> &Json {
        &self.options
    }

    /// The exported `options` as the script's own layer; `None` when they are no object.
    pub fn layer(&self) -> Option<Layer> {
        let options = self.options.as_object()?.clone();
        Some(Layer { kind: LayerKind::Script, options })
    }

    /// Whether a name occurs in the script or in what it imports.
    pub fn mentions(&self, name: &str) -> bool {
        self.texts.values().any(|text| text.contains(name))
    }

    /// Whether the script exports a function of this name.
    pub fn has_function(&self, name: &str) -> bool {
        self.functions.contains(name)
    }

    /// Names of the exported functions.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().map(String::as_str)
    }

    /// Every metric: k6's own, then the script's, by [`MetricId`].
    pub fn metrics(&self) -> impl Iterator<Item = &MetricDef> {
        BUILTINS.iter().chain(&self.metrics)
    }

    /// Files that it was made from: modules, and what they opened.
    pub fn sources(&self) -> impl Iterator<Item = PathBuf> {
        self.modules.keys().chain(self.files.keys()).filter_map(|name| file_path(name))
    }

    /// The clients that the script makes with `k6/x/fasthttp`; a [`Spec`](crate::Spec) names them from 1.
    pub fn clients(&self) -> &[ClientConfig] {
        &self.clients
    }
}

impl Building {
    /// A world that knows nothing yet but its entry.
    pub(crate) fn new(setup: ProgramSetup) -> Self {
        let path = std::path::absolute(&setup.path).unwrap_or(setup.path);
        Self {
            entry: file_url(&path),
            entry_text: setup.text,
            env: setup.env,
            fetch: setup.fetch,
            modules: RefCell::default(),
            files: RefCell::default(),
            arrays: Arrays::default(),
            metrics: RefCell::default(),
            clients: RefCell::default(),
            exports: RefCell::default(),
            imports: RefCell::default(),
            unknown: RefCell::default(),
            kinds: RefCell::default(),
            texts: RefCell::default(),
        }
    }

    /// What all other users are made from.
    pub(crate) fn finish(self) -> Program {
        let (options, functions) = self.exports.into_inner();
        Program {
            entry: self.entry,
            modules: self.modules.into_inner(),
            files: self.files.into_inner(),
            arrays: self.arrays,
            metrics: self.metrics.into_inner(),
            clients: self.clients.into_inner(),
            options,
            functions,
            env: self.env,
            unknown: self.unknown.into_inner(),
            texts: self.texts.into_inner(),
            callees: Callees::default(),
        }
    }
}

impl Source {
    /// The script's full name.
    pub(crate) fn entry(&self) -> &str {
        match self {
            Self::Building(building) => &building.entry,
            Self::Built(program) => &program.entry,
        }
    }

    /// `__ENV`.
    pub(crate) fn env(&self) -> &BTreeMap<String, String> {
        match self {
            Self::Building(building) => &building.env,
            Self::Built(program) => &program.env,
        }
    }

    /// The bytes of a file, as `open` gives them.
    pub(crate) fn file(&self, name: &str) -> Result<Arc<[u8]>, LoadError> {
        match self {
            Self::Built(program) => {
                program.files.get(name).cloned().ok_or_else(|| LoadError::NotOpened(name.to_owned()))
            }
            Self::Building(building) => {
                if let Some(bytes) = building.files.borrow().get(name) {
                    return Ok(Arc::clone(bytes));
                }
                let path = file_path(name).ok_or_else(|| LoadError::NotAFile(name.to_owned()))?;
                let bytes = files::read(&path, OPENED_FILE_BYTES_MAX)
                    .map_err(|source| LoadError::Read { path, source })?;
                let bytes: Arc<[u8]> = bytes.into();
                building.files.borrow_mut().insert(name.to_owned(), Arc::clone(&bytes));
                Ok(bytes)
            }
        }
    }

    /// The data of a `SharedArray`, if it was made already.
    pub(crate) fn array(&self, name: &str) -> Option<Arc<ArrayData>> {
        self.arrays().lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Keeps the data of a `SharedArray`; of two that were made at once, the first stays.
    pub(crate) fn keep_array(&self, name: &str, data: ArrayData) -> Arc<ArrayData> {
        let mut arrays = self.arrays().lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(arrays.entry(name.to_owned()).or_insert_with(|| Arc::new(data)))
    }

    fn arrays(&self) -> &Arrays {
        match self {
            Self::Building(building) => &building.arrays,
            Self::Built(program) => &program.arrays,
        }
    }

    /// A metric's id; it is made in the first world, and found in the others.
    pub(crate) fn metric(&self, wanted: &MetricDef) -> Result<MetricId, String> {
        let own = |metrics: &[MetricDef]| {
            let all = BUILTINS.iter().chain(metrics);
            all.enumerate()
                .find(|(_, known)| known.name == wanted.name)
                .map(|(idx, known)| (idx, known.clone()))
        };
        let known = match self {
            Self::Building(building) => own(&building.metrics.borrow()),
            Self::Built(program) => own(&program.metrics),
        };
        match (known, self) {
            (Some((idx, known)), _) if known == *wanted => Ok(MetricId(idx as u32)),
            (Some((_, known)), _) => Err(format!(
                "metric '{}' already exists but with type {:?} and contains {:?}",
                wanted.name, known.kind, known.contains
            )),
            (None, Self::Building(building)) => {
                let mut metrics = building.metrics.borrow_mut();
                metrics.push(wanted.clone());
                Ok(MetricId((BUILTINS.len() + metrics.len() - 1) as u32))
            }
            (None, Self::Built(_)) => Err(format!(
                "metric '{}' was not created in the first init: create it in every virtual user",
                wanted.name
            )),
        }
    }

    /// A client's number, from 1; it is made in the first world, and found in the others.
    pub(crate) fn client(&self, wanted: &ClientConfig) -> Result<u32, String> {
        let place = |clients: &[ClientConfig]| clients.iter().position(|known| known == wanted);
        let idx = match self {
            Self::Built(program) => place(&program.clients)
                .ok_or("a Client was not created in the first init: create it in every virtual user")?,
            Self::Building(building) => {
                let mut clients = building.clients.borrow_mut();
                place(&clients).unwrap_or_else(|| {
                    clients.push(wanted.clone());
                    clients.len() - 1
                })
            }
        };
        Ok(idx as u32 + 1)
    }

    /// Remembers what an import statement of the module `base` says, and where that leads.
    pub(crate) fn note_import(&self, base: &str, specifier: &str, resolved: &str) {
        if let Self::Building(building) = self {
            let [base, specifier, resolved] = [base, specifier, resolved].map(str::to_owned);
            building.imports.borrow_mut().push(Import { base, specifier, resolved });
        }
    }

    /// The module that an import of `resolved` in the file `base` gets: a separate one, where it imports what the module lacks.
    pub(crate) fn with_unknown(&self, base: &str, resolved: String) -> String {
        let name = |unknown: &Unknown| {
            let names = unknown.get(base)?.iter().filter(|(module, _)| *module == resolved);
            let names: Vec<&str> = names.map(|(_, name)| name.as_str()).collect();
            (!names.is_empty()).then(|| format!("{resolved}#{}", names.join("#")))
        };
        let name = match self {
            Self::Building(building) => name(&building.unknown.borrow()),
            Self::Built(program) => name(&program.unknown),
        };
        name.unwrap_or(resolved)
    }

    /// Keeps what the script exports.
    pub(crate) fn keep_exports(&self, options: Json, functions: BTreeSet<String>) {
        if let Self::Building(building) = self {
            *building.exports.borrow_mut() = (options, functions);
        }
    }

    /// What may be called at a place, the innermost first.
    pub(crate) fn callees_at(&self, place: &Place) -> Arc<[String]> {
        let find = |texts: &Texts| -> Arc<[String]> {
            texts
                .get(&place.file)
                .map_or_else(Vec::new, |text| callees_at(text, place.line, place.column))
                .into()
        };
        match self {
            Self::Building(building) => find(&building.texts.borrow()),
            Self::Built(program) => {
                let mut known = program.callees.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(callees) = known.get(place) {
                    return Arc::clone(callees);
                }
                let callees = find(&program.texts);
                if known.len() < CALLEES_MAX {
                    known.insert(place.clone(), Arc::clone(&callees));
                }
                callees
            }
        }
    }

    /// It is the first world.
    pub(crate) fn is_building(&self) -> bool {
        matches!(self, Self::Building(_))
    }
}

/// Places whose callees are remembered: a script has few calls of what is no function.
const CALLEES_MAX: usize = 256;
