/** Characters that move the cursor, or colour or reorder a line. */
const unsafeCharacters = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\ufeff]/gu
export const printableText = (text: string): string => text.replace(unsafeCharacters, '\ufffd')

export const oneLine = (text: string): string => text.replace(/\s+/g, ' ')

/** `min_value` and `MIN_VALUE` become `minValue`. */
export const camelCaseOf = (name: string): string => name.toLowerCase().replaceAll(/_([a-z])/g, (_, letter) => letter.toUpperCase())
