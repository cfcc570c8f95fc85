"""票价规则。金额一律以“分”为单位，避免小数误差。"""

BASE_FARE = 200  # 起步价：两元
STEP_FARE = 50  # 超过起步里程后，每五公里加五角
BASE_KILOMETRES = 10  # 起步里程

# 换乘优惠：上一次刷卡后多少分钟之内算换乘
TRANSFER_MINUTES = 90

# 各类乘客的折扣（百分比）。老年卡非高峰免费，高峰半价。
DISCOUNTS = {"成人": 100, "学生": 50, "老年": 0}


def single_fare(kilometres, passenger, peak):
    """返回一次乘车的票价（分）。"""
    extra = max(0, kilometres - BASE_KILOMETRES)
    steps = -(-extra // 5)  # 不足五公里按五公里计
    percent = DISCOUNTS[passenger]
    if passenger == "老年" and peak:
        percent = 50  # 高峰：7:00–9:00、17:00–19:00
    return (BASE_FARE + steps * STEP_FARE) * percent // 100
