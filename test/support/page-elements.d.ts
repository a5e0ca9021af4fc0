/** What tests read of an element in a page. The types of React declare elements without members. */
interface Element {
  readonly textContent: string | null
  getAttribute(name: string): string | null
}
