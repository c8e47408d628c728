export function parseHTML() { throw new Error('k6/html is not supported yet'); }
export const html = parseHTML, submitForm = parseHTML, clickLink = parseHTML;
export default { parseHTML };
