/** A name of the wire, or of a setting, as code writes it: `min_value` and `MIN_VALUE` are `minValue`. */
export const camelCaseOf = (name: string): string => name.toLowerCase().replaceAll(/_([a-z])/g, (_, letter) => letter.toUpperCase())
