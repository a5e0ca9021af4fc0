// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

import {IUniswapV3Pool} from "@uniswap/v3-core/contracts/interfaces/IUniswapV3Pool.sol";
import {IPoolManager} from "@uniswap/v4-core/src/interfaces/IPoolManager.sol";
import {IUnlockCallback} from "@uniswap/v4-core/src/interfaces/callback/IUnlockCallback.sol";
import {StateLibrary} from "@uniswap/v4-core/src/libraries/StateLibrary.sol";
import {BalanceDelta} from "@uniswap/v4-core/src/types/BalanceDelta.sol";
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
        manager.unlock(abi.encode(key, call));
    }

    function swapV4(PoolKey calldata key, bool zeroForOne, int256 amount, uint160 limit) external {
        bytes memory call =
            abi.encodeCall(IPoolManager.swap, (key, SwapParams(zeroForOne, -amount, limit), ""));
        manager.unlock(abi.encode(key, call));
    }

    function unlockCallback(bytes calldata data) external returns (bytes memory) {
        (PoolKey memory key, bytes memory call) = abi.decode(data, (PoolKey, bytes));
        (bool isDone, bytes memory result) = address(manager).call(call);
        require(isDone, "refused by the manager");
        BalanceDelta delta = abi.decode(result, (BalanceDelta));
        settle(key.currency0, delta.amount0());
        settle(key.currency1, delta.amount1());
        return "";
    }

    function settle(Currency currency, int128 amount) private {
        if (amount > 0) return manager.take(currency, address(this), uint128(amount));
        if (amount == 0) return;
        manager.sync(currency);
        Token(Currency.unwrap(currency)).transfer(address(manager), uint256(-int256(amount)));
        manager.settle();
    }

    /// What Uniswap's own library reads from the manager.
    function stateV4(PoolId id) external view returns (uint160 sqrtPriceX96, int24 tick, uint24 fee, uint128 liquidity) {
        (sqrtPriceX96, tick,, fee) = StateLibrary.getSlot0(manager, id);
        liquidity = StateLibrary.getLiquidity(manager, id);
    }
}
