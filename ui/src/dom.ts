// A few helpers around the DOM. Text is always set as text, never as markup: names and errors come from strangers.

type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, string | boolean | ((event: Event) => void) | undefined>;

/** An element: `h('td', { class: 'num' }, '12')`. Functions become listeners. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: (Child | Child[])[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== undefined && value !== false) element.setAttribute(name, value);
  }
  for (const child of children.flat()) {
    if (child != null && child !== false) element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** A table. The first column names its row; `numeric` is how many of the last columns are numbers. */
export function table(head: string[], rows: Child[][], numeric = head.length - 1): HTMLElement {
  const first = head.length - numeric;
  const cell = (tag: 'td' | 'th') => (child: Child, idx: number) => h(tag, { class: idx >= first ? 'num' : undefined, scope: tag === 'th' ? 'col' : undefined }, child);
  return h('div', { class: 'scroll', tabindex: '0' }, h('table', {}, h('thead', {}, h('tr', {}, head.map(cell('th')))), h('tbody', {}, rows.map((row) => h('tr', {}, row.map(cell('td')))))));
}

/** A closed block whose content is made when it is opened for the first time, or printed. */
export function fold(title: string, content: () => Child | Child[], isOpen = false): HTMLElement {
  const block = h('details', { open: isOpen }, h('summary', {}, title));
  const fill = () => { if (block.open && block.childElementCount === 1) block.append(h('div', { class: 'fold' }, content())); };
  block.addEventListener('toggle', fill);
  fill();
  return block;
}

export function section(title: string, ...children: (Child | Child[])[]): HTMLElement {
  return h('section', {}, h('h2', {}, title), ...children);
}

/** A colour of the style sheet, for the canvas. */
export function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
