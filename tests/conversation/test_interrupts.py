from __future__ import annotations

import os
import signal
import threading
import unittest

from mini_agent.conversation.interrupts import uninterrupted


@unittest.skipUnless(hasattr(signal, "SIGALRM"), "no such signals here")
class Uninterrupted(unittest.TestCase):
    def setUp(self) -> None:
        self.enterHandler(signal.SIGINT, signal.default_int_handler)

    def enterHandler(self, number: int, handler: object) -> None:
        self.addCleanup(signal.signal, number, signal.signal(number, handler))  # type: ignore[arg-type]

    def test_ctrl_c_waits_until_the_block_is_done(self) -> None:
        done = False
        with self.assertRaises(KeyboardInterrupt), uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            done = True
        self.assertTrue(done)

    def test_of_nested_blocks_the_outermost_decides(self) -> None:
        steps = []
        with self.assertRaises(KeyboardInterrupt), uninterrupted():
            with uninterrupted():
                os.kill(os.getpid(), signal.SIGINT)
                steps.append("inner")
            steps.append("outer")
        self.assertEqual(steps, ["inner", "outer"])

    def test_an_alarm_waits_too_and_ctrl_c_goes_before_it(self) -> None:
        rung = []
        self.enterHandler(signal.SIGALRM, lambda *_: rung.append("alarm"))
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGALRM)
            self.assertEqual(rung, [])
        self.assertEqual(rung, ["alarm"])
        with self.assertRaises(KeyboardInterrupt), uninterrupted():
            os.kill(os.getpid(), signal.SIGALRM)
            os.kill(os.getpid(), signal.SIGINT)

    def test_the_handlers_are_put_back_also_after_an_error(self) -> None:
        with self.assertRaises(ZeroDivisionError), uninterrupted():
            raise ZeroDivisionError
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)

    def test_a_signal_that_is_ignored_stays_ignored(self) -> None:
        self.enterHandler(signal.SIGINT, signal.SIG_IGN)
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
        self.assertEqual(signal.getsignal(signal.SIGINT), signal.SIG_IGN)

    def test_in_another_thread_it_does_nothing(self) -> None:
        ran = []

        def work() -> None:
            with uninterrupted():
                ran.append(True)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        self.assertEqual(ran, [True])
