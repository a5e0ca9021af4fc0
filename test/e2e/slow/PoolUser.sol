// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

import {IUniswapV3Pool} from "@uniswap/v3-core/contracts/interfaces/IUniswapV3Pool.sol";
import {IPoolManager} from "@uniswap/v4-core/src/interfaces/IPoolManager.sol";
import {IUnlockCallback} from "@uniswap/v4-core/src/interfaces/callback/IUnlockCallback.sol";
import {StateLibrary} from "@uniswap/v4-core/src/libraries/StateLibrary.sol";
import {TickMath} from "@uniswap/v4-core/src/libraries/TickMath.sol";
import {Currency} from "@uniswap/v4-core/src/types/Currency.sol";
import {PoolId} from "@uniswap/v4-core/src/types/PoolId.sol";
import {PoolKey} from "@uniswap/v4-core/src/types/PoolKey.sol";
import {ModifyLiquidityParams, SwapParams} from "@uniswap/v4-core/src/types/PoolOperation.sol";

interface Token {
    function transfer(address to, uint256 amount) external returns (bool);
}

/// Trades in pools of Uniswap v3 and v4 with its own tokens, which must be enough.
contract PoolUser is IUnlockCallback {
    IPoolManager private immutable manager;

    constructor(IPoolManager manager_) {
        manager = manager_;
    }

    function mintV3(IUniswapV3Pool pool, int24 lower, int24 upper, uint128 liquidity) external {
        pool.mint(address(this), lower, upper, liquidity, "");
    }

    function burnV3(IUniswapV3Pool pool, int24 lower, int24 upper, uint128 liquidity) external {
        pool.burn(lower, upper, liquidity);
    }

    function swapV3(IUniswapV3Pool pool, bool zeroForOne, int256 amount, uint160 limit) external {
        pool.swap(msg.sender, zeroForOne, amount, limit, "");
    }

    function uniswapV3MintCallback(uint256 amount0, uint256 amount1, bytes calldata) external {
        pay(amount0, amount1);
    }

    function uniswapV3SwapCallback(int256 amount0, int256 amount1, bytes calldata) external {
        pay(amount0 > 0 ? uint256(amount0) : 0, amount1 > 0 ? uint256(amount1) : 0);
    }

    function pay(uint256 amount0, uint256 amount1) private {
        IUniswapV3Pool pool = IUniswapV3Pool(msg.sender);
        if (amount0 > 0) Token(pool.token0()).transfer(msg.sender, amount0);
        if (amount1 > 0) Token(pool.token1()).transfer(msg.sender, amount1);
    }

    function changeV4(PoolKey calldata key, int24 lower, int24 upper, int256 liquidity) external {
        bytes memory call = abi.encodeCall(
            IPoolManager.modifyLiquidity, (key, ModifyLiquidityParams(lower, upper, liquidity, bytes32(0)), "")
        );
        run(key, call, key, "");
    }

    function swapV4(PoolKey calldata key, bool zeroForOne, int256 amount, uint160 limit) external {
        run(key, swapCall(key, zeroForOne, amount, limit), key, "");
    }

    /// Sells an amount of a token in one pool and buys as much in another one, so that none of it is transferred.
    function routeV4(PoolKey calldata sold, PoolKey calldata bought, Currency token, int256 amount) external {
        run(sold, routeCall(sold, sold.currency0 == token, amount), bought, routeCall(bought, bought.currency1 == token, -amount));
    }

    function routeCall(PoolKey calldata key, bool zeroForOne, int256 amount) private pure returns (bytes memory) {
        return swapCall(key, zeroForOne, amount, zeroForOne ? TickMath.MIN_SQRT_PRICE + 1 : TickMath.MAX_SQRT_PRICE - 1);
    }

    function swapCall(PoolKey calldata key, bool zeroForOne, int256 amount, uint160 limit) private pure returns (bytes memory) {
        return abi.encodeCall(IPoolManager.swap, (key, SwapParams(zeroForOne, -amount, limit), ""));
    }

    function run(PoolKey memory first, bytes memory firstCall, PoolKey memory second, bytes memory secondCall) private {
        manager.unlock(abi.encode(first, firstCall, second, secondCall));
    }

    function unlockCallback(bytes calldata data) external returns (bytes memory) {
        (PoolKey memory first, bytes memory firstCall, PoolKey memory second, bytes memory secondCall) =
            abi.decode(data, (PoolKey, bytes, PoolKey, bytes));
        callManager(firstCall);
        if (secondCall.length > 0) callManager(secondCall);
        settle(first.currency0);
        settle(first.currency1);
        settle(second.currency0);
        settle(second.currency1);
        return "";
    }

    function callManager(bytes memory call) private {
        (bool isDone,) = address(manager).call(call);
        require(isDone, "refused by the manager");
    }

    /// Pays or takes what is left of all calls. Uniswap's library that reads it needs a newer machine.
    function settle(Currency currency) private {
        int256 amount = int256(uint256(manager.exttload(keccak256(abi.encode(address(this), currency)))));
        if (amount > 0) return manager.take(currency, address(this), uint256(amount));
        if (amount == 0) return;
        manager.sync(currency);
        Token(Currency.unwrap(currency)).transfer(address(manager), uint256(-amount));
        manager.settle();
    }

    /// What Uniswap's own library reads from the manager.
    function stateV4(PoolId id) external view returns (uint160 sqrtPriceX96, int24 tick, uint24 fee, uint128 liquidity) {
        (sqrtPriceX96, tick,, fee) = StateLibrary.getSlot0(manager, id);
        liquidity = StateLibrary.getLiquidity(manager, id);
    }
}
