//! The module `k6/metrics`: Counter, Gauge, Rate, Trend.

use std::borrow::Cow;

use crate::console::Level;
use crate::host::Host;
use crate::metrics::{Contains, MetricDef, MetricId, MetricKind, is_metric_name};
use crate::vm::{Call, Ctx, Fun, JsResult, Value};

pub(super) fn exports(ctx: Ctx<'_>) -> JsResult<super::Exports<'_>> {
    let (object, mut exports) = (ctx.object(), Vec::new());
    let proto = Host::of(ctx).kept(ctx, PROTOTYPE, || prototype(ctx))?;
    for class in CLASSES {
        let constructor = ctx.constructor(class, &proto)?;
        object.set(class.text(), constructor.clone())?;
        exports.push((class.text().to_owned(), constructor));
    }
    exports.push(("default".to_owned(), object));
    Ok(exports)
}

const CLASSES: &[Fun] = &[
    Fun::new(c"Counter", 2, |call: &Call<'_>| make(call, MetricKind::Counter)),
    Fun::new(c"Gauge", 2, |call: &Call<'_>| make(call, MetricKind::Gauge)),
    Fun::new(c"Rate", 2, |call: &Call<'_>| make(call, MetricKind::Rate)),
    Fun::new(c"Trend", 2, |call: &Call<'_>| make(call, MetricKind::Trend)),
];

/// A metric, as a script holds it.
#[derive(Debug)]
struct Metric {
    id: MetricId,
    name: String,
}

fn prototype(ctx: Ctx<'_>) -> JsResult<Value<'_>> {
    let proto = ctx.object();
    ctx.set_functions(&proto, &[Fun::new(c"add", 2, add)])?;
    Ok(proto)
}

fn make<'js>(call: &Call<'js>, kind: MetricKind) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    Host::of(ctx).require_init(ctx, "metrics must be declared in the init context: `new` of one")?;
    let name = call.arg(0).to_string()?;
    if !is_metric_name(&name) {
        let rule = "Metric names must only include up to 128 ASCII letters, numbers, or underscores and start with a letter or an underscore";
        return Err(ctx.throw_error(&format!("invalid metric name: '{name}'. {rule}")));
    }
    let contains = if call.arg(1).is_truthy() { Contains::Time } else { Contains::Default };
    let wanted = MetricDef { name: Cow::Owned(name.clone()), kind, contains };
    let id = Host::of(ctx).source.metric(&wanted).map_err(|problem| ctx.throw_error(&problem))?;
    let proto = Host::of(ctx).kept(ctx, PROTOTYPE, || prototype(ctx))?;
    let object = ctx.native(&proto, Box::new(Metric { id, name: name.clone() }))?;
    object.define("name", ctx.string(&name))?;
    Ok(object)
}

fn add<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, this, value) = (call.ctx(), call.this(), call.arg(0));
    let host = Host::of(ctx);
    let Some(metric) = this.opaque::<Metric>() else {
        return Err(ctx.throw_type("`add` must be called on a metric"));
    };
    host.forbid_init(ctx, "adding to a metric")?;
    let number = match value.as_bool() {
        Some(is) => f64::from(u8::from(is)),
        None if value.is_nullish() => f64::NAN,
        None => value.to_number()?,
    };
    if number.is_nan() {
        let problem = format!(
            "'{}' is an invalid value for metric '{}', a number or a boolean value is expected",
            value.to_text()?.to_owned(),
            metric.name
        );
        if host.shared.options.throws {
            return Err(ctx.throw_error(&problem));
        }
        host.shared.console.line(Level::Warning, &problem, "");
        return Ok(ctx.bool(false));
    }
    let tags = if call.count() > 1 { super::tag_pairs(&call.arg(1))? } else { Ok(Vec::new()) };
    let tags = tags.map_err(|problem| {
        ctx.throw_error(&format!("cannot add tags for the '{}' custom metric: {problem}", metric.name))
    })?;
    let recorder = &host.shared.recorder;
    host.with_tags(&tags, |tags| match tags.get("check").filter(|_| metric.id == MetricId::CHECKS) {
        Some(name) => recorder.check(tags.group, &name, number != 0.0, tags),
        None => recorder.add(metric.id, number, tags),
    });
    Ok(ctx.bool(true))
}

/// Where the classes' prototype is kept.
const PROTOTYPE: &str = "metric prototype";
