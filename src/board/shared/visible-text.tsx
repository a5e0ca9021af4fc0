import { options } from 'preact'

const directionOverrides = /\p{Bidi_Control}/gu
/** Invisible characters that JSON may contain unescaped. */
const unseenCharacters = /[\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\x7f-\x9f]/gu

const visibleText = (text: string): string => text.replace(directionOverrides, '\ufffd')

const escaped = (character: string): string =>
  character.replace(/./gs, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** Makes JSON in which every character is visible: invisible ones are escaped. */
export const visibleJson = (value: unknown, indent?: number): string =>
  JSON.stringify(value, null, indent).replace(unseenCharacters, escaped)

export const CodeBlock = ({ text }: { readonly text: string }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard must reach whatever scrolls
  <pre tabIndex={0}>{text}</pre>
)

/** From now on, cleans every text and title that is drawn: any of them may contain text from the list or the chain. */
export function makeTextsVisible(): void {
  const next = options.vnode
  options.vnode = (node) => {
    // A text node has no type, and its props are the text.
    if (node.type === null) Object.assign(node, { props: visibleText(String(node.props)) })
    for (const name of typeof node.type === 'string' ? ['title', 'aria-label'] : []) {
      const text: unknown = Reflect.get(node.props, name)
      if (typeof text === 'string') Reflect.set(node.props, name, visibleText(text))
    }
    next?.(node)
  }
}
