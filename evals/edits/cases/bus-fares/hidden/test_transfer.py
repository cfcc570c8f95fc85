import io
import tokenize
import unittest
from pathlib import Path

from fares.rules import single_fare
from fares.transfer import notice, trip_fares

KEPT = {
    "rules.py": (
        "# 起步价：两元",
        "# 超过起步里程后，每五公里加五角",
        "# 起步里程",
        "# 换乘优惠：上一次刷卡后多少分钟之内算换乘",
        "# 各类乘客的折扣（百分比）。老年卡非高峰免费，高峰半价。",
        "# 不足五公里按五公里计",
        "# 高峰：7:00–9:00、17:00–19:00",
    ),
    "transfer.py": ("# 每次换乘减一元", "# 上一次刷卡时刻", "# 注意：票价不会减成负数"),
}


def second_fare(gap):
    return trip_fares([(480, 5, "成人", True), (480 + gap, 5, "成人", True)])[1]


class Transfer(unittest.TestCase):
    def test_within_ninety_minutes_the_fare_is_reduced(self):
        self.assertEqual([second_fare(gap) for gap in (0, 59, 60, 89)], [100, 100, 100, 100])

    def test_the_ninetieth_minute_counts(self):
        self.assertEqual([second_fare(gap) for gap in (90, 91)], [100, 200])

    def test_the_card_reader_says_the_same(self):
        said = [notice(480 + gap, 480) for gap in (59, 60, 90, 91)]
        self.assertEqual(said, ["换乘优惠", "换乘优惠", "换乘优惠", "欢迎乘车"])
        self.assertEqual(notice(480, None), "欢迎乘车")

    def test_other_fares_stay(self):
        self.assertEqual([single_fare(16, who, True) for who in ("成人", "学生", "老年")], [300, 150, 150])
        self.assertEqual(trip_fares([(480, 5, "老年", False), (500, 5, "老年", False)]), [0, 0])

    def test_the_comments_are_all_there(self):
        for name, kept in KEPT.items():
            text = Path("fares", name).read_bytes().decode("utf-8")
            tokens = tokenize.generate_tokens(io.StringIO(text).readline)
            comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
            self.assertEqual([comment for comment in kept if comment not in comments], [], name)

    def test_no_comment_speaks_of_an_hour(self):
        self.assertNotIn("一小时之内", Path("fares", "transfer.py").read_text(encoding="utf-8"))
