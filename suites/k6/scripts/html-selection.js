// Pages: selections, elements, data and values.
import { parseHTML } from 'k6/html';
import { check } from 'k6';
const PAGE = `<html lang="en"><head><title>Shop</title></head><body id="top" class="a b">
<nav><a href="/one?x=1#h" data-item-id="12" data-sold="true">One</a> <a href="https://other.example:8443/two">Two</a></nav>
<ul><li>1</li><li class="mid">2</li><li>3</li></ul><p>some <b>bold</b> text</p>
<table><tr><th>n</th><td colspan="2">x</td></tr></table></body></html>`;
export default function () {
  const doc = parseHTML(PAGE);
  const link = doc.find('a').get(0);
  check(doc, {
    text: (d) => d.find('title').text() === 'Shop',
    attr: (d) => d.find('a').attr('href') === '/one?x=1#h' && d.find('a').attr('none') === undefined && d.find('a').attr('none', 'x') === 'x',
    html: (d) => d.find('p').html() === 'some <b>bold</b> text',
    data: (d) => d.find('a').data('itemId') === 12 && d.find('a').data('sold') === true,
    map: (d) => d.find('li').map((idx, item) => idx + item.text()).join() === '01,12,23',
    each: (d) => { const seen = []; d.find('li').each((idx, item) => seen.push(item.textContent())); return seen.join() === '1,2,3'; },
    filter: (d) => d.find('li').filter('.mid').text() === '2' && d.find('li').not('.mid').size() === 2,
    walk: (d) => d.find('.mid').next().text() === '3' && d.find('.mid').prev().text() === '1' && d.find('.mid').siblings().size() === 2,
    up: (d) => d.find('b').parents().size() === 3 && d.find('b').closest('body').attr('id') === 'top',
    order: (d) => d.find('li').first().text() + d.find('li').last().text() + d.find('li').eq(1).text() === '132',
    slice: (d) => d.find('li').slice(1).size() === 2 && d.find('li').toArray().length === 3,
    index: (d) => d.find('.mid').index() === 1 && d.find('li').is('.mid') && d.find('p').has('b').size() === 1,
    pseudo: (d) => d.find('li:nth-child(2)').text() === '2' && d.find('li:contains("3")').size() === 1 && d.find('li:not(.mid)').size() === 2,
  });
  check(link, {
    name: (e) => e.nodeName() === 'a' && e.nodeType() === 1,
    url: (e) => e.hash() === '#h' && e.pathname() === '/one' && e.search() === '?x=1',
    parent: (e) => e.parentElement().nodeName() === 'nav' && e.nextElementSibling().host() === 'other.example:8443',
    text: (e) => e.textContent() === 'One' && e.innerHTML() === 'One' && e.hasAttribute('href'),
  });
  check(doc.find('body').get(0), {
    classes: (e) => e.classList().join() === 'a,b' && e.id() === 'top',
    query: (e) => e.querySelector('.mid').textContent() === '2' && e.querySelectorAll('li').length === 3,
    cell: (e) => e.querySelector('td').colSpan() === 2,
  });
}
