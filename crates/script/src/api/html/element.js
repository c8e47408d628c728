(function (dom) {
  'use strict';
  // One node of a document, as the DOM shows it; every member is a method, as in k6.
  class Element {
    constructor(doc, node, select) {
      Object.defineProperty(this, 'at', { value: { doc, node, select }, enumerable: false });
    }
    nodeName() { return dom.name(this.at.doc, this.at.node); }
    nodeType() { return dom.kind(this.at.doc, this.at.node); }
    nodeValue() { return this.nodeType() === 3 || this.nodeType() === 8 ? this.textContent() : undefined; }
    id() { return text(this, 'id'); }
    className() { return this.getAttribute('class'); }
    classList() { return words(this.getAttribute('class')); }
    lang() { return this.getAttribute('lang'); }
    getAttribute(name) { return dom.attribute(this.at.doc, this.at.node, name); }
    getAttributeNode(name) {
      const value = this.getAttribute(name);
      return value === undefined ? undefined : { owner_element: this, name, value };
    }
    hasAttribute(name) { return this.getAttribute(name) !== undefined; }
    hasAttributes() { return dom.attributes(this.at.doc, this.at.node).length > 0; }
    attributes() {
      const all = {};
      for (const [name, value] of dom.attributes(this.at.doc, this.at.node)) all[name] = { owner_element: this, name, value };
      return all;
    }
    innerHTML() { return dom.inner(this.at.doc, this.at.node); }
    textContent() { return dom.text(this.at.doc, this.at.node); }
    namespaceURI() { return 'http://www.w3.org/1999/xhtml'; }
    isDefaultNamespace() { return true; }
    childNodes() { return all(this, related(this, 'contents')); }
    children() { return all(this, related(this, 'children')); }
    childElementCount() { return related(this, 'children').length; }
    hasChildNodes() { return related(this, 'contents').length > 0; }
    firstChild() { return one(this, related(this, 'contents')[0]); }
    lastChild() { return one(this, related(this, 'contents').at(-1)); }
    firstElementChild() { return one(this, related(this, 'children')[0]); }
    lastElementChild() { return one(this, related(this, 'children').at(-1)); }
    nextSibling() { return one(this, related(this, 'next')[0]); }
    previousSibling() { return one(this, related(this, 'previous')[0]); }
    nextElementSibling() { return one(this, elements(this, 'next')[0]); }
    previousElementSibling() { return one(this, elements(this, 'previous')[0]); }
    parentNode() { return one(this, related(this, 'parent')[0]); }
    parentElement() { return one(this, elements(this, 'parent')[0]); }
    ownerDocument() { return one(this, related(this, 'ancestors').at(-1) ?? this.at.node); }
    querySelector(selector) { return one(this, found(this, selector)[0]); }
    querySelectorAll(selector) { return all(this, found(this, selector)); }
    getElementsByTagName(name) { return all(this, found(this, name)); }
    getElementsByClassName(names) { return all(this, found(this, '.' + words(names).join('.'))); }
    matches(selector) { return dom.matches(this.at.doc, this.at.node, selector); }
    contains(other) { return other instanceof Element && ancestors(other).includes(this.at.node) && other.at.doc === this.at.doc; }
    isSameNode(other) { return other instanceof Element && other.at.doc === this.at.doc && other.at.node === this.at.node; }
    isEqualNode(other) { return other instanceof Element && JSON.stringify(shape(this)) === JSON.stringify(shape(other)); }
    selection() { return this.at.select(this.at.doc, [this.at.node]); }
    toString() {
      const href = LINKS.includes(this.nodeName()) ? this.getAttribute('href') : undefined;
      return href ?? `[object html.Node]`;
    }
    toJSON() { return {}; }
  }

  const words = (value) => (value ?? '').split(/\s+/).filter(Boolean);
  const related = (it, how) => dom.related(it.at.doc, it.at.node, how);
  const isElement = (it, node) => dom.kind(it.at.doc, node) === 1;
  const elements = (it, how) => related(it, how).filter((node) => isElement(it, node));
  const ancestors = (it) => [it.at.node, ...related(it, 'ancestors')];
  const found = (it, selector) => dom.select(it.at.doc, [it.at.node], selector);
  const one = (it, node) => (node === undefined ? undefined : make(it.at.doc, node, it.at.select));
  const all = (it, nodes) => nodes.map((node) => one(it, node));
  const text = (it, name) => it.getAttribute(name) ?? '';
  const number = (it, name, otherwise) => {
    const value = parseInt(it.getAttribute(name), 10);
    return Number.isNaN(value) ? otherwise : value;
  };
  const shape = (it) => [it.nodeName(), dom.attributes(it.at.doc, it.at.node).sort(), it.innerHTML()];
  const owner = (it, tag) => one(it, ancestors(it).find((node) => dom.name(it.at.doc, node) === tag));
  const labels = (it) => {
    const own = it.id() ? found(it.ownerDocument(), `label[for="${it.id()}"]`) : [];
    const around = ancestors(it).filter((node) => dom.name(it.at.doc, node) === 'label');
    return all(it, [...own, ...around]);
  };
  const fields = (it) => all(it, found(it, 'button, fieldset, input, object, output, select, textarea')).filter((one) => one.getAttribute('type') !== 'image');
  const options = (it) => all(it, found(it, 'option'));
  const optionValue = (it) => it.getAttribute('value') ?? it.textContent();
  const selected = (it) => {
    const chosen = options(it).filter((one) => one.hasAttribute('selected'));
    return chosen.length || it.hasAttribute('multiple') ? chosen : options(it).filter((one) => !one.hasAttribute('disabled')).slice(0, 1);
  };
  const rows = (it) => all(it, found(it, 'tr'));
  const position = (it, list) => list.findIndex((one) => one.isSameNode(it));

  // The attributes that an element has as methods: method, and how it is read where its name alone does not say.
  const asText = (name) => (it) => text(it, name);
  const asNumber = (name, otherwise) => (it) => number(it, name, otherwise);
  const asFlag = (name) => (it) => it.hasAttribute(name);
  const asOneOf = (name, values, otherwise) => (it) => {
    const value = text(it, name).toLowerCase();
    return values.includes(value) ? value : otherwise;
  };
  const texts = (...names) => Object.fromEntries(names.map((name) => [name, asText(name.toLowerCase())]));
  const flags = (...names) => Object.fromEntries(names.map((name) => [name, asFlag(name.toLowerCase())]));
  const counts = (otherwise, ...names) => Object.fromEntries(names.map((name) => [name, asNumber(name.toLowerCase(), otherwise)]));

  const LINKS = ['a', 'area'];
  const URL_PARTS = ['hash', 'host', 'hostname', 'origin', 'password', 'pathname', 'port', 'protocol', 'search', 'username'];
  const ENCODINGS = ['application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain'];
  const link = {
    ...texts('href', 'hreflang', 'media', 'rel', 'target', 'type', 'coords', 'shape', 'alt', 'download'),
    ...Object.fromEntries(URL_PARTS.map((part) => [part, (it) => dom.parts(text(it, 'href'))[part]])),
    relList: (it) => words(it.getAttribute('rel')), text: (it) => it.textContent(),
  };
  const control = { ...texts('name'), ...flags('disabled', 'autofocus', 'required', 'readonly'), readOnly: asFlag('readonly'), form: (it) => owner(it, 'form'), labels };
  const submit = {
    ...texts('formAction', 'formTarget'), formEnctype: asOneOf('formenctype', ENCODINGS, ''),
    formMethod: asOneOf('formmethod', ['get', 'post'], ''), formNoValidate: asFlag('formnovalidate'),
  };
  const media = { ...texts('src', 'crossorigin', 'mediaGroup'), crossOrigin: asText('crossorigin'), ...flags('autoplay', 'controls', 'loop', 'muted'), defaultMuted: asFlag('muted') };
  const cell = { ...counts(1, 'colSpan', 'rowSpan'), headers: (it) => words(it.getAttribute('headers')), cellIndex: (it) => position(it, it.parentElement().children()) };
  const TAGS = {
    a: link, area: link,
    audio: media, video: { ...media, ...texts('poster'), ...counts(0, 'width', 'height') },
    base: texts('href', 'target'),
    button: { ...control, ...submit, ...texts('value'), type: asOneOf('type', ['button', 'reset', 'menu'], 'submit') },
    canvas: { width: asNumber('width', 150), height: asNumber('height', 150) },
    data: texts('value'),
    datalist: { options },
    embed: texts('height', 'width', 'src', 'type'),
    fieldset: { ...control, elements: fields, type: () => 'fieldset' },
    form: {
      ...texts('name', 'action', 'target'), method: asOneOf('method', ['post', 'dialog'], 'get'), elements: fields, length: (it) => fields(it).length,
      acceptCharset: asText('accept-charset'), autocomplete: asOneOf('autocomplete', ['off'], 'on'), noValidate: asFlag('novalidate'),
      enctype: asOneOf('enctype', ENCODINGS, ENCODINGS[0]), encoding: asOneOf('enctype', ENCODINGS, ENCODINGS[0]),
    },
    iframe: texts('height', 'width', 'name', 'src'),
    img: { ...texts('src', 'alt', 'crossorigin', 'sizes', 'srcset', 'name', 'useMap'), crossOrigin: asText('crossorigin'), currentSrc: asText('src'), isMap: asFlag('ismap'), ...counts(0, 'width', 'height') },
    input: {
      ...control, ...submit, ...texts('accept', 'alt', 'autocomplete', 'max', 'min', 'pattern', 'placeholder', 'src', 'step', 'title'), ...flags('checked', 'multiple'),
      value: (it) => it.selection().val() ?? '', type: (it) => text(it, 'type').toLowerCase() || 'text', ...counts(-1, 'maxLength', 'minLength'), ...counts(0, 'size', 'width', 'height'),
      defaultValue: asText('value'), defaultChecked: asFlag('checked'), indeterminate: () => false, list: (it) => (it.getAttribute('list') ? it.ownerDocument().querySelector('#' + it.getAttribute('list')) : undefined),
    },
    keygen: { ...control, ...texts('challenge', 'keytype') },
    label: { form: (it) => owner(it, 'form'), htmlFor: asText('for'), control: (it) => (it.getAttribute('for') ? it.ownerDocument().querySelector('#' + it.getAttribute('for')) : fields(it)[0]) },
    legend: { form: (it) => owner(it, 'form') },
    li: { value: asNumber('value', 0) },
    link: { ...texts('href', 'hreflang', 'media', 'rel', 'type'), crossOrigin: asText('crossorigin'), relList: (it) => words(it.getAttribute('rel')), sizes: (it) => words(it.getAttribute('sizes')) },
    map: { ...texts('name'), areas: (it) => all(it, found(it, 'area')) },
    meta: { ...texts('name', 'content'), httpEquiv: asText('http-equiv') },
    meter: { value: (it) => Number(text(it, 'value')), min: (it) => Number(text(it, 'min')), max: (it) => Number(it.getAttribute('max') ?? 1), low: (it) => Number(text(it, 'low')), high: (it) => Number(it.getAttribute('high') ?? 1), optimum: (it) => Number(it.getAttribute('optimum') ?? 0.5), labels },
    del: { cite: asText('cite'), dateTime: asText('datetime') }, ins: { cite: asText('cite'), dateTime: asText('datetime') },
    object: { ...texts('data', 'height', 'width', 'name', 'type', 'useMap'), form: (it) => owner(it, 'form'), typeMustMatch: asFlag('typemustmatch') },
    ol: { reversed: asFlag('reversed'), start: asNumber('start', 1), type: (it) => text(it, 'type') || '1' },
    optgroup: { ...texts('label'), ...flags('disabled') },
    option: { ...flags('disabled', 'selected'), defaultSelected: asFlag('selected'), form: (it) => owner(it, 'form'), index: (it) => position(it, options(owner(it, 'select'))), label: (it) => it.getAttribute('label') ?? it.textContent(), text: (it) => it.textContent(), value: optionValue },
    output: { ...control, htmlFor: (it) => words(it.getAttribute('for')), value: (it) => it.textContent(), defaultValue: (it) => it.textContent(), type: () => 'output' },
    param: texts('name', 'value'),
    pre: texts('name', 'value'),
    progress: { labels, max: (it) => Number(it.getAttribute('max') ?? 1), value: (it) => Number(text(it, 'value')), position: (it) => Number(text(it, 'value')) / Number(it.getAttribute('max') ?? 1) },
    blockquote: texts('cite'), q: texts('cite'),
    script: { ...texts('src', 'charset', 'type'), ...flags('async', 'defer', 'noModule'), crossOrigin: asText('crossorigin'), text: (it) => it.textContent() },
    select: { ...control, ...flags('multiple'), length: (it) => options(it).length, options, selectedOptions: selected, selectedIndex: (it) => position(selected(it)[0], options(it)), size: (it) => number(it, 'size', it.hasAttribute('multiple') ? 4 : 1), type: (it) => (it.hasAttribute('multiple') ? 'select-multiple' : 'select-one'), value: (it) => (selected(it).length ? optionValue(selected(it)[0]) : '') },
    source: texts('keySystem', 'media', 'sizes', 'src', 'srcset', 'type'),
    style: { ...texts('media', 'type'), ...flags('disabled') },
    table: { caption: (it) => it.querySelector('caption'), rows, tHead: (it) => it.querySelector('thead'), tFoot: (it) => it.querySelector('tfoot'), tBodies: (it) => it.querySelectorAll('tbody') },
    tbody: { rows }, thead: { rows }, tfoot: { rows },
    td: cell, th: { ...cell, ...texts('abbr', 'scope') },
    tr: { cells: (it) => it.children().filter((one) => ['td', 'th'].includes(one.nodeName())), rowIndex: (it) => position(it, rows(owner(it, 'table'))), sectionRowIndex: (it) => position(it, rows(it.parentElement())) },
    textarea: { ...control, ...texts('autocomplete', 'placeholder', 'wrap'), ...counts(-1, 'maxLength', 'minLength'), cols: asNumber('cols', 20), rows: asNumber('rows', 2), value: (it) => it.textContent(), defaultValue: (it) => it.textContent(), textLength: (it) => it.textContent().length, type: () => 'textarea' },
    time: { dateTime: asText('datetime') },
    title: { text: (it) => it.textContent() },
    track: { ...texts('kind', 'label', 'src', 'srclang'), ...flags('default') },
    ul: texts('type'),
  };

  // A class for each kind of element, made when the first one is met.
  const classes = new Map();
  const classOf = (tag) => {
    if (!classes.has(tag)) {
      const own = class extends Element {};
      for (const [name, read] of Object.entries(TAGS[tag] ?? {})) {
        Object.defineProperty(own.prototype, name, { value() { return read(this); }, enumerable: true });
      }
      classes.set(tag, own);
    }
    return classes.get(tag);
  };
  const make = (doc, node, select) => new (classOf(dom.kind(doc, node) === 1 ? dom.name(doc, node) : ''))(doc, node, select);
  return { make, Element };
})
