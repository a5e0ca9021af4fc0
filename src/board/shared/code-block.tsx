export const CodeBlock = ({ text }: { readonly text: string }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard must reach whatever scrolls
  <pre tabIndex={0}>{text}</pre>
)
