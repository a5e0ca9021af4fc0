/** API keys in plain text, long enough to be accepted. */
export const [apiKey, otherApiKey] = ['k-0123456789abcdef', 'k-fedcba9876543210']
