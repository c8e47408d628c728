(function (dom, element) {
  'use strict';
  const { make, Element } = element;
  // A list of nodes of one document, walked as with jQuery.
  class Selection {
    constructor(doc, nodes, before, url) {
      Object.defineProperty(this, 'at', { value: { doc, nodes, before, url }, enumerable: false });
      this.url = url ?? '';
    }

    find(selector) { return derived(this, typeof selector === 'string' ? dom.select(this.at.doc, this.at.nodes, selector) : inside(this, nodesOf(this, selector))); }
    filter(what) { return derived(this, kept(this, what, true)); }
    not(what) { return derived(this, kept(this, what, false)); }
    is(what) { return kept(this, what, true).length > 0; }
    has(what) { return derived(this, this.at.nodes.filter((node) => typeof what === 'string' ? dom.select(this.at.doc, [node], what).length > 0 : nodesOf(this, what).some((one) => ancestorsOf(this, one).includes(node)))); }
    add(what) {
      const more = typeof what === 'string' ? dom.select(this.at.doc, [root(this)], what) : nodesOf(this, what);
      return derived(this, sorted([...this.at.nodes, ...more]));
    }
    end() { return this.at.before ?? derived(this, []); }

    children(selector) { return step(this, 'children', selector); }
    contents() { return derived(this, sorted(this.at.nodes.flatMap((node) => dom.related(this.at.doc, node, 'contents')))); }
    parent(selector) { return step(this, 'parent', selector); }
    parents(selector) { return step(this, 'ancestors', selector); }
    next(selector) { return step(this, 'next', selector, 1); }
    nextAll(selector) { return step(this, 'next', selector); }
    prev(selector) { return step(this, 'previous', selector, 1); }
    prevAll(selector) { return step(this, 'previous', selector); }
    nextUntil(limit, filter) { return until(this, 'next', limit, filter); }
    prevUntil(limit, filter) { return until(this, 'previous', limit, filter); }
    parentsUntil(limit, filter) { return until(this, 'ancestors', limit, filter); }
    siblings(selector) {
      const all = this.at.nodes.flatMap((node) => [...elementsOf(this, node, 'previous'), ...elementsOf(this, node, 'next')]);
      return matching(this, sorted(all), selector);
    }
    closest(selector) {
      const first = (node) => ancestorsOf(this, node).find((one) => dom.matches(this.at.doc, one, selector));
      return derived(this, sorted(this.at.nodes.map(first).filter((node) => node !== undefined)));
    }

    first() { return this.eq(0); }
    last() { return this.eq(-1); }
    eq(idx) { const node = this.at.nodes.at(idx); return derived(this, node === undefined ? [] : [node]); }
    slice(begin, end) { return derived(this, this.at.nodes.slice(begin, end)); }
    single(selector) { return derived(this, dom.select(this.at.doc, this.at.nodes, selector).slice(0, 1)); }
    size() { return this.at.nodes.length; }
    index(what) {
      const first = this.at.nodes[0];
      if (first === undefined) return -1;
      if (what === undefined) return elementsOf(this, first, 'previous').length;
      return typeof what === 'string' ? dom.select(this.at.doc, [root(this)], what).indexOf(first) : this.at.nodes.indexOf(nodesOf(this, what)[0]);
    }
    get(idx) {
      if (idx === undefined) return this.at.nodes.map((node) => elementOf(this, node));
      const node = this.at.nodes.at(idx);
      return node === undefined ? undefined : elementOf(this, node);
    }
    toArray() { return this.at.nodes.map((node) => derived(this, [node])); }
    each(call) { this.at.nodes.forEach((node, idx) => call(idx, elementOf(this, node))); return this; }
    map(call) { return this.at.nodes.map((node, idx) => call(idx, derived(this, [node]))).filter((value) => value !== undefined && value !== null); }

    attr(name, otherwise) {
      const node = this.at.nodes[0];
      return (node === undefined ? undefined : dom.attribute(this.at.doc, node, name)) ?? otherwise;
    }
    text() { return this.at.nodes.map((node) => dom.text(this.at.doc, node)).join(''); }
    html() { return this.at.nodes.length ? dom.inner(this.at.doc, this.at.nodes[0]) : ''; }
    val() { return this.at.nodes.length ? value(this, this.at.nodes[0]) : undefined; }
    data(key) {
      const node = this.at.nodes[0];
      if (node === undefined) return undefined;
      if (key !== undefined) return converted(dom.attribute(this.at.doc, node, 'data-' + dashed(key)));
      const own = dom.attributes(this.at.doc, node).filter(([name]) => name.startsWith('data-'));
      return Object.fromEntries(own.map(([name, text]) => [camel(name.slice(5)), converted(text)]));
    }
    serializeArray() {
      const fields = [];
      for (const node of controls(this)) {
        const own = value(this, node);
        if (own !== undefined) fields.push({ name: dom.attribute(this.at.doc, node, 'name'), value: own });
      }
      return fields;
    }
    serializeObject() { return Object.fromEntries(this.serializeArray().map(({ name, value }) => [name, value])); }
    serialize() { return query(this.serializeArray().map(({ name, value }) => [name, value])); }
    toJSON() { return { url: this.url }; }
  }

  const derived = (it, nodes) => new Selection(it.at.doc, nodes, it, it.at.url);
  const select = (doc, nodes) => new Selection(doc, nodes, undefined, undefined);
  const elementOf = (it, node) => make(it.at.doc, node, select);
  const root = (it) => (it.at.nodes.length ? ancestorsOf(it, it.at.nodes[0]).at(-1) : 0);
  const sorted = (nodes) => [...new Set(nodes)].sort((left, right) => left - right);
  const ancestorsOf = (it, node) => [node, ...dom.related(it.at.doc, node, 'ancestors')];
  const inside = (it, nodes) => nodes.filter((node) => ancestorsOf(it, node).slice(1).some((one) => it.at.nodes.includes(one)));
  const elementsOf = (it, node, how) => dom.related(it.at.doc, node, how).filter((one) => dom.kind(it.at.doc, one) === 1);
  const matching = (it, nodes, selector) => derived(it, selector === undefined ? nodes : nodes.filter((node) => dom.matches(it.at.doc, node, selector)));
  const step = (it, how, selector, most) => matching(it, sorted(it.at.nodes.flatMap((node) => elementsOf(it, node, how).slice(0, most))), selector);
  const nodesOf = (it, what) => {
    if (what instanceof Selection || what instanceof Element) return what.at.nodes ?? [what.at.node];
    throw new TypeError('invalid argument: give a selector, a Selection or an Element');
  };
  // Whether a node is one of those that a selector, a Selection or an Element means.
  const oneOf = (it, what) => {
    if (typeof what === 'string') return (node) => dom.matches(it.at.doc, node, what);
    const nodes = nodesOf(it, what);
    return (node) => nodes.includes(node);
  };
  const kept = (it, what, wanted) => {
    if (typeof what === 'function') return it.at.nodes.filter((node, idx) => Boolean(what(idx, derived(it, [node]))) === wanted);
    const is = oneOf(it, what);
    return it.at.nodes.filter((node) => is(node) === wanted);
  };
  const until = (it, how, limit, filter) => {
    const isLimit = limit === undefined ? () => false : oneOf(it, limit);
    const before = (nodes) => { const end = nodes.findIndex(isLimit); return end < 0 ? nodes : nodes.slice(0, end); };
    return matching(it, sorted(it.at.nodes.flatMap((node) => before(elementsOf(it, node, how)))), filter);
  };

  const tag = (it, node) => dom.name(it.at.doc, node);
  const attr = (it, node, name) => dom.attribute(it.at.doc, node, name);
  const optionValue = (it, node) => attr(it, node, 'value') ?? dom.inner(it.at.doc, node);
  const value = (it, node) => {
    switch (tag(it, node)) {
      case 'input': return attr(it, node, 'value') ?? (['checkbox', 'radio'].includes(attr(it, node, 'type')) ? 'on' : '');
      case 'button': return attr(it, node, 'value') ?? '';
      case 'textarea': return dom.inner(it.at.doc, node);
      case 'option': return optionValue(it, node);
      case 'select': {
        const options = dom.select(it.at.doc, [node], 'option');
        const chosen = options.filter((one) => attr(it, one, 'selected') !== undefined).map((one) => optionValue(it, one));
        if (attr(it, node, 'multiple') !== undefined) return chosen;
        return chosen[0] ?? '';
      }
      default: return undefined;
    }
  };
  // What k6 sends of a form: controls with a name, and boxes with checked="checked", written out; browsers also send those with a bare
  // `checked`, and none that are disabled.
  const controls = (it) => {
    const within = dom.select(it.at.doc, it.at.nodes, 'input, select, textarea');
    const own = it.at.nodes.filter((node) => ['input', 'select', 'textarea'].includes(tag(it, node)));
    return sorted([...own, ...within]).filter((node) => {
      const type = attr(it, node, 'type') ?? '';
      if (!attr(it, node, 'name') || BUTTONS.includes(type)) return false;
      return !['checkbox', 'radio'].includes(type) || attr(it, node, 'checked') === 'checked';
    });
  };
  const BUTTONS = ['submit', 'button', 'reset', 'image', 'file'];

  const converted = (text) => {
    if (text === undefined) return undefined;
    if (text === 'true' || text === 'false') return text === 'true';
    if (text === 'null' || text === 'undefined') return undefined;
    if (text !== '' && String(Number(text)) === text) return Number(text);
    if (text.startsWith('{') || text.startsWith('[')) {
      try { return JSON.parse(text); } catch { return text; }
    }
    return text;
  };
  const dashed = (key) => key.replace(/[A-Z]+/g, (letters) => '-' + letters.toLowerCase());
  // Go's abbreviations stay in capitals.
  const INITIALS = ['API', 'ASCII', 'CPU', 'CSS', 'DNS', 'EOF', 'ETA', 'GPU', 'GUID', 'HTML', 'HTTP', 'HTTPS', 'ID', 'IP', 'JSON', 'OS', 'QPS', 'RAM', 'RHS', 'RPC', 'SLA', 'SMTP', 'SQL', 'SSH', 'TCP', 'TLS', 'TTL', 'UDP', 'UI', 'UID', 'URI', 'URL', 'UTF8', 'UUID', 'VM', 'XML', 'XMPP', 'XSRF', 'XSS'];
  const camel = (name) => name.split('-').map((word, idx) => {
    if (idx === 0) return word;
    return INITIALS.includes(word.toUpperCase()) ? word.toUpperCase() : word.charAt(0).toUpperCase() + word.slice(1);
  }).join('');
  const escaped = (text) => encodeURIComponent(text).replace(/%20/g, '+').replace(/[!'()*]/g, (letter) => '%' + letter.charCodeAt(0).toString(16).toUpperCase());

  // Names and values, of which some are lists, as a query, sorted by name.
  const query = (fields) => {
    const pairs = fields.flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
    return pairs.sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0)).map((pair) => pair.map(escaped).join('=')).join('&');
  };

  const parseHTML = (source, url) => { return new Selection(dom.parse(source), [0], undefined, url); };

  // `response.submitForm`: the form's fields with those of the caller, sent where the form says.
  const submitForm = (response, http, { formSelector = 'form', submitSelector = '[type="submit"]', fields = {}, params } = {}) => {
    const form = parseHTML(response.body, response.url).find(formSelector);
    if (form.size() === 0) throw new Error(`no form found for selector '${formSelector}' in response '${response.url}'`);
    const method = (form.attr('method') ?? 'GET').toUpperCase();
    const url = dom.join(response.url, form.attr('action') ?? '');
    const button = form.find(submitSelector).first();
    const values = form.serializeObject();
    if (button.attr('name')) values[button.attr('name')] = button.val();
    Object.assign(values, fields);
    if (method !== 'GET') return http.request(method, url, values, params);
    const sent = query(Object.entries(values));
    return http.get(url.split('#')[0].split('?')[0] + (sent ? '?' + sent : ''), params);
  };

  // `response.clickLink`: follows a link of the page.
  const clickLink = (response, http, { selector = 'a[href]', params } = {}) => {
    const link = parseHTML(response.body, response.url).find(selector).first();
    if (link.size() === 0) throw new Error(`no element found for selector '${selector}' in response '${response.url}'`);
    if (link.attr('href') === undefined) throw new Error(`no valid href attribute value found on element '${selector}' in response '${response.url}'`);
    return http.get(dom.join(response.url, link.attr('href')), params);
  };

  return { parseHTML, submitForm, clickLink };
})
