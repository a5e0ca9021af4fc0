type CsvProps = { readonly label: string; readonly name: string; readonly text: () => string }

/** Saves what a part of the page shows, with the exact numbers. */
export const CsvButton = ({ label, name, text }: CsvProps) => (
  <button type="button" class="copy" aria-label={label} title={label} onClick={() => saveFile(`${name}.csv`, text())}>
    CSV
  </button>
)

/** Saves a text as a file of the reader. */
function saveFile(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}
