// A file is read in pieces, by each user from its own place.
import { check } from 'k6';
import { open, SeekMode } from 'k6/experimental/fs';
export const options = { vus: 2, iterations: 4 };
const file = await open('open-file.txt');
const failure = async (promise) => { try { await promise; } catch (error) { return error.name; } };
const missing = await failure(open('nowhere.txt'));
const folder = await failure(open('..'));
const later = () => failure(open('open-file.txt'));
export default async function () {
  const { name, size } = await file.stat();
  const bytes = new Uint8Array(3);
  const counts = [];
  for (let count; (count = await file.read(bytes)) !== null;) counts.push(count);
  const places = [await file.seek(2, SeekMode.Start), await file.seek(1, SeekMode.Current), await file.seek(-1, SeekMode.End)];
  check(null, {
    stat: () => name === 'open-file.txt' && size === 8,
    pieces: () => counts.join() === '3,3,2',
    places: () => places.join() === '2,3,6',
    errors: () => missing === 'NotFoundError' && folder === 'InvalidResourceError',
  });
  check(await failure(file.seek(-1, SeekMode.Start)), { 'bad place': (name) => name === 'TypeError' });
  check(await failure(file.read([])), { 'bad buffer': (name) => name === 'TypeError' });
  check(await later(), { 'not later': (name) => name === 'ForbiddenError' });
  await file.seek(0, SeekMode.Start);
}
