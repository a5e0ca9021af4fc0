/** Text as it is. A long one scrolls, also with the keyboard. */
export const CodeBlock = ({ text }: { readonly text: string }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
  <pre tabIndex={0}>{text}</pre>
)
