//! The module `k6/html`, and what `Response` does with HTML. The tree and its selectors are native; `Selection` and `Element`, which
//! scripts walk it with, are JavaScript that is read when they are first asked for.

use std::collections::{BTreeSet, HashMap};

use dom_query::{Document, Matcher, NodeId, NodeRef};
use html5ever::ParseOpts;
use html5ever::tendril::TendrilSink;
use html5ever::tree_builder::TreeBuilderOpts;
use squall_plan::limits::HTML_DEPTH_MAX;
use url::Url;

use crate::bodies::Held;
use crate::host::Host;
use crate::vm::{Call, Ctx, Fun, JsResult, Value};

pub(super) fn exports(ctx: Ctx<'_>) -> JsResult<super::Exports<'_>> {
    let module = ctx.object();
    module.set("parseHTML", function(ctx, "parseHTML")?)?;
    super::exports_of(module)
}

/// A member of the library: `parseHTML`, `submitForm` or `clickLink`.
pub(crate) fn function<'js>(ctx: Ctx<'js>, name: &str) -> JsResult<Value<'js>> {
    library(ctx)?.get(name)
}

fn library(ctx: Ctx<'_>) -> JsResult<Value<'_>> {
    Host::of(ctx).kept(ctx, "html", || {
        let dom = ctx.object();
        ctx.set_functions(&dom, DOM)?;
        let element = ctx.evaluate(include_str!("element.js"))?.call(&ctx.undefined(), &[&dom])?;
        let selection = ctx.evaluate(include_str!("selection.js"))?;
        selection.call(&ctx.undefined(), &[&dom, &element])
    })
}

/// What the JavaScript part is built on. Nodes are numbers, their places in the tree; they grow in document order.
const DOM: &[Fun] = &[
    Fun::new(c"parse", 1, parse),
    Fun::new(c"select", 3, select),
    Fun::new(c"matches", 3, matches),
    Fun::new(c"related", 3, related),
    Fun::new(c"text", 2, |call: &Call<'_>| on_node(call, |ctx, node| Ok(ctx.string(&node.text())))),
    Fun::new(c"inner", 2, |call: &Call<'_>| {
        on_node(call, |ctx, node| Ok(ctx.string(&closed_voids(&node.inner_html()))))
    }),
    Fun::new(c"kind", 2, |call: &Call<'_>| on_node(call, |ctx, node| Ok(ctx.number(kind(node).into())))),
    Fun::new(c"name", 2, |call: &Call<'_>| on_node(call, |ctx, node| Ok(ctx.string(&name(node))))),
    Fun::new(c"attributes", 2, |call: &Call<'_>| on_node(call, attributes)),
    Fun::new(c"attribute", 3, attribute),
    Fun::new(c"join", 2, join),
    Fun::new(c"parts", 1, parts),
];

/// A parsed document, and its nodes in document order.
struct Tree {
    document: Document,
    ids: Vec<NodeId>,
    places: HashMap<NodeId, usize>,
    /// What it takes of the memory that the user has for responses and pages.
    _held: Held,
}

impl Tree {
    fn of(ctx: Ctx<'_>, text: &str) -> JsResult<Self> {
        let tag_count = memchr::memchr_iter(b'<', text.as_bytes()).count();
        let bytes = text.len() * BYTES_PER_BYTE + tag_count * BYTES_PER_TAG;
        let held = Host::of(ctx).http.bodies.hold(bytes).map_err(|problem| ctx.throw_error(&problem))?;
        let document = parsed(ctx, text)?;
        let (mut ids, mut places) = (Vec::new(), HashMap::new());
        let root = document.root();
        for (place, id) in [root.id].into_iter().chain(root.descendants_it().map(|node| node.id)).enumerate()
        {
            if place % NODES_PER_LOOK == NODES_PER_LOOK - 1 {
                ctx.give_way()?;
            }
            ids.push(id);
            places.insert(id, place);
        }
        Ok(Self { document, ids, places, _held: held })
    }

    /// The number by which a script knows a node.
    fn place<'js>(&self, ctx: Ctx<'js>, node: &NodeRef<'_>) -> Value<'js> {
        self.places.get(&node.id).map_or_else(|| ctx.undefined(), |place| ctx.number(*place as f64))
    }
}

/// Parses a page piece by piece. What each tag costs grows with the elements that are open, so their number has a bound.
fn parsed(ctx: Ctx<'_>, text: &str) -> JsResult<Document> {
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let options = ParseOpts { tree_builder, ..ParseOpts::default() };
    let mut parser = html5ever::parse_document(Document::default(), options);
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        rest = after;
        parser.process(piece.into());
        if depth(&parser.tokenizer.sink.sink) > HTML_DEPTH_MAX {
            return Err(ctx
                .throw_error(&format!("the page has more than {HTML_DEPTH_MAX} levels of nested elements")));
        }
        ctx.give_way()?;
    }
    Ok(parser.finish())
}

/// Nodes between two looks at the clock.
const NODES_PER_LOOK: usize = 1024;

/// Nodes that a selector is compared with between two looks: some, such as `:nth-child`, go over all siblings of each.
const MATCHES_PER_LOOK: usize = 8;

/// What a byte of a page takes in the tree: its share of the attributes and texts.
const BYTES_PER_BYTE: usize = 8;

/// What a tag takes: an element, the text after it, and their places.
const BYTES_PER_TAG: usize = 300;

/// How deep the element is that was opened last.
fn depth(document: &Document) -> usize {
    std::iter::successors(Some(document.root()), NodeRef::last_child).count()
}

/// Parsed in one go: so many tags fit in that a page goes just beyond the bound before it is seen.
const PIECE_BYTES: usize = 2048;

fn parse<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, source) = (call.ctx(), call.arg(0));
    let text = match source.bytes() {
        Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        None => source.to_string()?,
    };
    ctx.native(&ctx.object(), Box::new(Tree::of(ctx, &text)?))
}

/// Calls with a node: arguments are the tree and the node's number.
fn on_node<'js>(
    call: &Call<'js>,
    read: impl FnOnce(Ctx<'js>, &NodeRef<'_>) -> JsResult<Value<'js>>,
) -> JsResult<Value<'js>> {
    in_tree(call, |ctx, _, node| read(ctx, node))
}

/// The same, with the tree.
fn in_tree<'js>(
    call: &Call<'js>,
    read: impl FnOnce(Ctx<'js>, &Tree, &NodeRef<'_>) -> JsResult<Value<'js>>,
) -> JsResult<Value<'js>> {
    let (ctx, holder) = (call.ctx(), call.arg(0));
    let place = call.arg(1).to_number()? as usize;
    let tree = holder.opaque::<Tree>().ok_or_else(|| ctx.throw_type("this is not a document"))?;
    match tree.ids.get(place).and_then(|id| tree.document.tree.get(id)) {
        Some(node) => read(ctx, tree, &node),
        None => Err(ctx.throw_type("this is not a node")),
    }
}

/// The descendants of nodes that match a selector; none where the selector cannot be read, as in k6.
fn select<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, holder, selector) = (call.ctx(), call.arg(0), call.arg(2).to_string()?);
    let tree = holder.opaque::<Tree>().ok_or_else(|| ctx.throw_type("this is not a document"))?;
    let Ok(matcher) = Matcher::new(&selector) else { return ctx.array_of([]) };
    let mut found: BTreeSet<&usize> = BTreeSet::new();
    for place in call.arg(1).elements()? {
        let id = tree.ids.get(place.to_number()? as usize);
        let Some(node) = id.and_then(|id| tree.document.tree.get(id)) else { continue };
        for (nth, one) in node.descendants_it().enumerate() {
            if nth % MATCHES_PER_LOOK == MATCHES_PER_LOOK - 1 {
                ctx.give_way()?;
            }
            if one.is_element() && one.is_match(&matcher) {
                found.extend(tree.places.get(&one.id));
            }
        }
    }
    ctx.array_of(found.into_iter().map(|place| ctx.number(*place as f64)))
}

fn matches<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let selector = call.arg(2).to_string()?;
    on_node(call, |ctx, node| {
        let is = node.is_element() && Matcher::new(&selector).is_ok_and(|matcher| node.is_match(&matcher));
        Ok(ctx.bool(is))
    })
}

/// Nodes by how they are related to one, nearest first.
fn related<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let how = call.arg(2).to_string()?;
    in_tree(call, |ctx, tree, node| {
        let found: Vec<NodeRef<'_>> = match how.as_str() {
            "parent" => node.parent().into_iter().collect(),
            "ancestors" => node.ancestors(None),
            "children" => node.element_children(),
            "contents" => node.children(),
            "next" => std::iter::successors(node.next_sibling(), NodeRef::next_sibling).collect(),
            _ => std::iter::successors(node.prev_sibling(), NodeRef::prev_sibling).collect(),
        };
        ctx.array_of(found.iter().map(|one| tree.place(ctx, one)))
    })
}

/// The DOM's `nodeType`.
fn kind(node: &NodeRef<'_>) -> u8 {
    match () {
        () if node.is_element() => 1,
        () if node.is_text() => 3,
        () if node.is_comment() => 8,
        () if node.is_doctype() => 10,
        () => 9,
    }
}

fn name(node: &NodeRef<'_>) -> String {
    match kind(node) {
        1 => node.node_name().map(|name| name.to_string()).unwrap_or_default(),
        3 => "#text".to_owned(),
        8 => "#comment".to_owned(),
        10 => "html".to_owned(),
        _ => "#document".to_owned(),
    }
}

fn attributes<'js>(ctx: Ctx<'js>, node: &NodeRef<'_>) -> JsResult<Value<'js>> {
    let pairs = node.attrs().into_iter().map(|attribute| {
        let name = ctx.string(&attribute.name.local);
        ctx.array_of([name, ctx.string(&attribute.value)])
    });
    ctx.array_of(pairs.collect::<JsResult<Vec<_>>>()?)
}

fn attribute<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let name = call.arg(2).to_string()?;
    on_node(call, |ctx, node| {
        Ok(node.attr(&name).map_or_else(|| ctx.undefined(), |value| ctx.string(&value)))
    })
}

/// A reference within a page as a URL.
fn join<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, base, reference) = (call.ctx(), call.arg(0).to_string()?, call.arg(1).to_string()?);
    let joined = Url::parse(&base).and_then(|base| base.join(&reference));
    Ok(ctx.string(joined.as_ref().map_or(reference.as_str(), Url::as_str)))
}

/// The parts of a URL as links have them.
fn parts<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, text, parts) = (call.ctx(), call.arg(0).to_string()?, call.ctx().object());
    let url = Url::parse(&text);
    let (path, hash) = text.split_once('#').map_or((text.as_str(), None), |(path, hash)| (path, Some(hash)));
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let of = |read: fn(&Url) -> String| url.as_ref().map(read).unwrap_or_default();
    let port = of(|url| url.port().map(|port| port.to_string()).unwrap_or_default());
    let hostname = of(|url| url.host_str().unwrap_or_default().to_owned());
    let host = if port.is_empty() { hostname.clone() } else { format!("{hostname}:{port}") };
    let scheme = of(|url| url.scheme().to_owned());
    let origin = if hostname.is_empty() { String::new() } else { format!("{scheme}://{host}") };
    for (name, value) in [
        ("hash", hash.map(|hash| format!("#{hash}")).unwrap_or_default()),
        ("search", query.map(|query| format!("?{query}")).unwrap_or_default()),
        ("pathname", url.as_ref().map_or(path, Url::path).to_owned()),
        ("protocol", format!("{scheme}:")),
        ("username", of(|url| url.username().to_owned())),
        ("password", of(|url| url.password().unwrap_or_default().to_owned())),
        ("origin", origin),
        ("host", host),
        ("hostname", hostname),
        ("port", port),
    ] {
        parts.set(name, ctx.string(&value))?;
    }
    Ok(parts)
}
/// HTML with the elements that never have content closed in themselves, as Go writes them: `<br/>`.
fn closed_voids(html: &str) -> String {
    let mut closed = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(begin) = rest.find('<') {
        let (before, tag) = rest.split_at(begin);
        closed.push_str(before);
        let end = tag_end(tag);
        let name = tag[1..].split(|letter: char| !letter.is_ascii_alphanumeric()).next().unwrap_or_default();
        match tag[..end].strip_suffix('>') {
            Some(open) if VOID_ELEMENTS.contains(&name) && !open.ends_with('/') => {
                closed.push_str(open);
                closed.push_str("/>");
            }
            _ => closed.push_str(&tag[..end]),
        }
        rest = &tag[end..];
    }
    closed.push_str(rest);
    closed
}

/// Where a tag ends: a `>` in a quoted attribute is part of it.
fn tag_end(tag: &str) -> usize {
    let mut is_quoted = false;
    for (at, letter) in tag.char_indices() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '>' if !is_quoted => return at + 1,
            _ => {}
        }
    }
    tag.len()
}

const VOID_ELEMENTS: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
    "wbr",
];
