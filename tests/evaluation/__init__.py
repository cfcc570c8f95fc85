"""Tests of `evals/`. The folder can't be called so: unittest takes it for a package of its own, before ours."""
