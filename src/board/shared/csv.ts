type CsvValue = string | number | null

/** Returns rows as CSV. A text that a spreadsheet would take for a formula begins with an apostrophe. */
export function csvOf(columns: readonly string[], rows: readonly (readonly CsvValue[])[]): string {
  return [columns, ...rows].map((row) => `${row.map(csvCell).join()}\r\n`).join('')
}

function csvCell(value: CsvValue): string {
  if (value === null) return ''
  const text = String(value)
  const isFormula = /^[=+\-@\t\r]/.test(text) && !/^-?\d+(\.\d+)?$/.test(text)
  const safe = isFormula ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
