// A table is parsed once for all users, or by each row by row.
import { check } from 'k6';
import { open, SeekMode } from 'k6/experimental/fs';
import csv from 'k6/experimental/csv';
export const options = { vus: 2, iterations: 4 };
const table = () => open('experimental-csv.csv');
const lists = await csv.parse(await table(), { skipFirstLine: true });
const objects = await csv.parse(await table(), { asObjects: true });
const some = await csv.parse(await table(), { fromLine: 1, toLine: 2 });
const file = await table();
const parser = new csv.Parser(file, { delimiter: ',' });
const failure = async (make) => { try { await make(); } catch (error) { return error.message; } };
const bad = [
  await failure(async () => csv.parse(await table(), { delimiter: ';' })),
  await failure(async () => csv.parse(await table(), { delimiter: '::' })),
  await failure(async () => csv.parse(await table(), { fromLine: 9 })),
  await failure(async () => csv.parse(await table(), { asObjects: true, skipFirstLine: true })),
];
export default async function () {
  const names = [];
  for (let row; !(row = await parser.next()).done;) names.push(row.value[1]);
  await file.seek(0, SeekMode.Start);
  let refused = false;
  try { lists[0] = []; } catch (error) { refused = true; }
  check(null, {
    lists: () => JSON.stringify(lists) === '[["1","Ada \\"the first\\"","36"],["2","Bob, Jr.","41"],["3","Cy","29"]]',
    objects: () => objects.length === 3 && objects[1].name === 'Bob, Jr.' && objects.map((row) => row.age).join() === '36,41,29',
    some: () => some.map((row) => row[0]).join() === '1,2',
    rows: () => names.join('|') === 'name|Ada "the first"|Bob, Jr.|Cy',
    refused: () => refused,
    'bad quote': () => bad[0] === 'failed to read record; reason: parse error on line 2, column 3: bare " in non-quoted-field',
    'bad delimiter': () => bad[1].endsWith('delimiter must be a single character'),
    'bad line': () => bad[2].endsWith('failed to skip lines until line 9; reason: EOF'),
    'bad pair': () => bad[3].includes("cannot be enabled when 'skipFirstLine' is true"),
  });
}
