/** `min_value` and `MIN_VALUE` become `minValue`. */
export const camelCaseOf = (name: string): string => name.toLowerCase().replaceAll(/_([a-z])/g, (_, letter) => letter.toUpperCase())
