// Tells frameworks with server components to run this module in the browser.
'use client'

export { StocktapeProvider, type StocktapeProviderProps, type StockView, useFeed, useStock, useTape } from './hooks.ts'
export type { TapeSelection } from './tape-selection.ts'
export type { TapeFeed } from './tape-state.ts'
export type { TapeData, TapeResult, TapeView } from './tape-view.ts'
