"""换乘：一段时间内再次上车，减免票价。"""

from fares.rules import TRANSFER_MINUTES, single_fare

TRANSFER_DISCOUNT = 100  # 每次换乘减一元


def trip_fares(rides):
    """返回每一程的票价。rides 为 (刷卡时刻（分钟）, 公里数, 乘客类别, 是否高峰) 的列表，按时刻排序。"""
    fares = []
    previous = None  # 上一次刷卡时刻
    for minute, kilometres, passenger, peak in rides:
        fare = single_fare(kilometres, passenger, peak)
        # 注意：票价不会减成负数
        if previous is not None and minute - previous <= TRANSFER_MINUTES:
            fare = max(0, fare - TRANSFER_DISCOUNT)
        fares.append(fare)
        previous = minute
    return fares


def notice(minute, previous):
    """返回刷卡机上显示的文字。"""
    if previous is not None and minute - previous < 60:  # 一小时之内
        return "换乘优惠"
    return "欢迎乘车"
