// An import of a name that a module does not export.
import { none } from './error-loop.js';

export default function () {
  none();
}
