// A form of a page: its fields, sent with others of the script's; and a link.
import http from 'k6/http';
import { check } from 'k6';
import { parseHTML } from 'k6/html';
const BASE = __ENV.BASE;
const FORM = '<form><input name="a" value="1"><input type="checkbox" name="b" value="on" checked="checked"><input type="checkbox" name="c" value="no"><select name="d"><option>x</option><option selected value="y">Y</option></select><textarea name="e">t</textarea><input type="submit" name="f" value="go"></form>';
export default function () {
  const form = parseHTML(FORM).find('form');
  check(form, {
    serialize: (f) => f.serialize() === 'a=1&b=on&d=y&e=t',
    object: (f) => JSON.stringify(f.serializeObject().d) === '"y"',
    array: (f) => f.serializeArray().length === 4,
    values: (f) => f.find('[name=a]').val() === '1' && f.find('select').val() === 'y' && f.find('textarea').val() === 't',
  });
  const page = http.get(`${BASE}/forms/post`);
  check(page, { page: (r) => r.html().find('form').size() === 1, selector: (r) => r.html('form').attr('action') === '/post' });
  const sent = page.submitForm({ formSelector: 'form', fields: { custname: 'test' } });
  check(sent, { sent: (r) => r.status === 200 && r.json('form.custname') === 'test' });
}
