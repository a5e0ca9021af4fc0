import { options } from 'preact'

const directionOverrides = /\p{Bidi_Control}/gu
/** Characters that JSON may hold unescaped, and that nobody sees. */
const unseenCharacters = /[\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\x7f-\x9f]/gu

/** A text without what would change the order of its characters, as in the relay's own lines for people. */
const shownText = (text: string): string => text.replace(directionOverrides, '\ufffd')

const escaped = (character: string): string =>
  character.replace(/./gs, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** JSON with the same meaning, in which every character can be seen. */
export const shownJson = (value: unknown, indent?: number): string =>
  JSON.stringify(value, null, indent).replace(unseenCharacters, escaped)

/** From now on every text and title of the page is drawn so: in any of them may be a text from outside. */
export function cleanShownTexts(): void {
  const next = options.vnode
  options.vnode = (node) => {
    // A text is a node without a type, and its props are the text.
    if (node.type === null) Object.assign(node, { props: shownText(String(node.props)) })
    else if (typeof node.type === 'string') cleanTitles(node.props)
    next?.(node)
  }
}

function cleanTitles(props: object): void {
  for (const name of ['title', 'aria-label']) {
    const text: unknown = Reflect.get(props, name)
    if (typeof text === 'string') Reflect.set(props, name, shownText(text))
  }
}
