//! Loading: a module is compiled in the first world, and read from its code in all others.

use squall_plan::files;
use squall_plan::limits::SCRIPT_FILE_BYTES_MAX;

use crate::api;
use crate::console::Level;
use crate::error::{ScriptError, describe, frames_of, throw};
use crate::host::Host;
use crate::loading::LoadError;
use crate::program::{Building, Compiled, Import, Source};
use crate::resolve::{file_path, resolve};
use crate::source::SourceText;
use crate::syntax;
use crate::vm::{Ctx, JsResult, Module, Thrown, Value, compile_function, compile_module};

use super::meta;

/// A module in a context.
#[derive(Debug)]
pub(crate) enum Loaded<'js> {
    /// ES module.
    Module(Module<'js>),
    /// CommonJS function.
    Common(Module<'js>),
}

/// A module by its full name.
pub(crate) fn load<'js>(source: &Source, ctx: Ctx<'js>, name: &str) -> JsResult<Loaded<'js>> {
    let known = match source {
        Source::Building(building) => {
            let known = building.modules.borrow().get(name).cloned();
            match known {
                None => return building.compile(ctx, name),
                known => known,
            }
        }
        Source::Built(program) => program.modules.get(name).cloned(),
    };
    match known {
        Some(Compiled::Module { code, uses_meta }) => {
            meta::placed(code.read(ctx)?, uses_meta).map(Loaded::Module)
        }
        Some(Compiled::Common(code)) => code.read(ctx).map(Loaded::Common),
        None => Err(ctx.throw_error(&format!(
            "the module `{name}` was not loaded in the first init: imports must not depend on the virtual user"
        ))),
    }
}

impl Building {
    /// The text of a module of the script, or of our own.
    fn text(&self, name: &str) -> Result<String, LoadError> {
        if let Some(text) = self.entry_text.as_ref().filter(|_| name == self.entry) {
            return Ok(text.clone());
        }
        if name.starts_with("https://") {
            let fetch = self.fetch.as_ref().ok_or(LoadError::NoNetwork)?;
            return fetch(name).map_err(|problem| LoadError::Fetch { name: name.to_owned(), problem });
        }
        let Some(path) = file_path(name) else { return Err(api::unsupported(name)) };
        files::read_text(&path, SCRIPT_FILE_BYTES_MAX).map_err(|source| LoadError::Read { path, source })
    }

    fn compile<'js>(&self, ctx: Ctx<'js>, name: &str) -> JsResult<Loaded<'js>> {
        let text = self.text(name).map_err(|problem| throw(ctx, &problem))?;
        let script = SourceText::parse(name, text).map_err(|problem| ctx.throw("SyntaxError", &problem))?;
        if script.is_module {
            self.note_unknown(ctx, name, &script)?;
            self.keep_text(name, &script.text);
            return self.compile_as_module(ctx, name, &script.text);
        }
        let wrapped = format!("(function(module, exports, require, global) {{{}\n}})", script.text);
        self.keep_text(name, &wrapped);
        let Ok(function) = compile_function(ctx, name, &wrapped) else {
            // The unwrapped text has its columns where the user sees them.
            drop(ctx.take_exception());
            return self.compile_as_module(ctx, name, &script.text);
        };
        self.modules.borrow_mut().insert(name.to_owned(), Compiled::Common(function.code()?));
        Ok(Loaded::Common(function))
    }

    fn keep_text(&self, name: &str, text: &str) {
        self.texts.borrow_mut().insert(name.to_owned(), text.into());
    }

    fn note_unknown(&self, ctx: Ctx<'_>, name: &str, script: &SourceText) -> JsResult<()> {
        let mut unknown = Vec::new();
        let names = script.names.iter().filter(|(_, name)| name != "default");
        for (module, export) in names.filter(|(module, _)| api::is_native(module)) {
            let exports = api::instantiate(ctx, module)?;
            if !exports.iter().any(|(known, _)| known == export) {
                let text = format!("the module `{module}` does not export `{export}`: it is undefined");
                Host::of(ctx).shared.console.line(Level::Warning, &text, "");
                unknown.push((module.clone(), export.clone()));
            }
        }
        let others =
            script.names.iter().filter(|(module, name)| name != "default" && !api::is_native(module));
        for (specifier, export) in others {
            let Ok(resolved) = resolve(name, specifier) else { continue };
            if self.is_common(&resolved) {
                unknown.push((resolved, export.clone()));
            }
        }
        if !unknown.is_empty() {
            self.unknown.borrow_mut().insert(name.to_owned(), unknown);
        }
        Ok(())
    }

    fn compile_as_module<'js>(&self, ctx: Ctx<'js>, name: &str, text: &str) -> JsResult<Loaded<'js>> {
        let module = self.compile_placed(ctx, name, text)?;
        let uses_meta = text.contains("import.meta");
        let compiled = Compiled::Module { code: module.code()?, uses_meta };
        self.modules.borrow_mut().insert(name.to_owned(), compiled);
        meta::placed(module, uses_meta).map(Loaded::Module)
    }

    /// Compiles a module; a syntax error gets its column, and an import that fails its place.
    fn compile_placed<'js>(&self, ctx: Ctx<'js>, name: &str, text: &str) -> JsResult<Module<'js>> {
        compile_module(ctx, name, text).map_err(|Thrown| {
            let exception = ctx.take_exception();
            if let Some((line, column)) = self.place_of(&exception, name, text) {
                // Where it cannot be set, the place stays as the engine gave it.
                let _ = exception.set("stack", ctx.string(&format!("    at {name}:{line}:{column}\n")));
            }
            ctx.throw_value(exception)
        })
    }

    /// Line and column of what kept a module from being compiled; none: another module has the fault.
    fn place_of(&self, exception: &Value<'_>, name: &str, text: &str) -> Option<(usize, usize)> {
        let (ctx, message) = (exception.ctx(), describe(exception));
        let stack = frames_of(exception).into_iter().next().unwrap_or_default();
        if stack.is_empty() {
            let imports = self.imports.borrow();
            let last = imports.last().filter(|last| last.base == name)?;
            return syntax::place_of_import(text, &last.specifier);
        }
        let line = stack.strip_prefix(&format!("at {name}:"))?.split(':').next()?.parse().ok()?;
        let fails_alike = |beginning: &str| {
            compile_module(ctx, name, beginning).is_err() && describe(&ctx.take_exception()) == message
        };
        message.starts_with("SyntaxError").then(|| (line, syntax::column(text, line, fails_alike)))
    }

    /// The engine does not tell which import wants a name that a module does not export, and cuts long names.
    pub(crate) fn placed(&self, error: ScriptError) -> ScriptError {
        let Some((export, module)) = syntax::missing_export(&error.message) else { return error };
        let imports = self.imports.borrow();
        let candidates = imports.iter().filter(|import| import.resolved.starts_with(module));
        let mut wanted = candidates.filter_map(|import| Some((import, self.lacking(import, export)?)));
        let Some((import, (name, place))) = wanted.next() else { return error };
        let message = format!("SyntaxError: Could not find export '{name}' in module '{}'", import.resolved);
        let help = "import a name that the module exports".to_owned();
        ScriptError { message, place: error.place.or(place), help, kind: error.kind }
    }

    /// The name, which begins with `export`, that an import wants and its module lacks, and the place of it.
    fn lacking(&self, import: &Import, export: &str) -> Option<(String, Option<String>)> {
        let parsed = |name: &str| SourceText::parse(name, self.text(name).ok()?).ok();
        let (base, target) = (parsed(&import.base)?, parsed(&import.resolved)?);
        let lacks = |name: &&String| {
            name.starts_with(export) && !target.has_star && !target.exports.contains(name)
                || target.has_star && **name == *export
        };
        let names = base.names.iter().filter(|(specifier, _)| *specifier == import.specifier);
        let name = names.map(|(_, name)| name).find(lacks)?;
        let place = syntax::place_of_name(&base.text, &import.specifier, name)
            .map(|(line, column)| format!("{}:{line}:{column}", import.base.trim_start_matches("file://")));
        Some((name.clone(), place))
    }

    /// Whether a module is CommonJS; its names need not be there before it has run.
    fn is_common(&self, name: &str) -> bool {
        if let Some(known) = self.modules.borrow().get(name) {
            return matches!(known, Compiled::Common(_));
        }
        if !name.starts_with("file://") && !name.starts_with("https://") {
            return false;
        }
        let mut kinds = self.kinds.borrow_mut();
        *kinds.entry(name.to_owned()).or_insert_with(|| {
            let source = self.text(name).ok().and_then(|text| SourceText::parse(name, text).ok());
            source.is_some_and(|source| !source.is_module)
        })
    }
}
