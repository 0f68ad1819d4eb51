"""The models of this process: loaded once, in the background, and warmed up.

``start`` returns at once; ``state`` says how far it is; ``ready`` waits.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal

import numpy as np

from voiceapp.audio.pcm import to_float
from voiceapp.engine.inference.pool import InferencePool
from voiceapp.engine.inference.recogniser import RATE_HZ, Recogniser
from voiceapp.engine.inference.vad import WINDOW_SAMPLES, Detector, DetectorModel
from voiceapp.engine.inference.voice import HibariVoice, Voice
from voiceapp.engine.inference.weights import ModelError
from voiceapp.text import providers

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Models:
    """Everything that infers, and the threads that it runs in."""

    detector: DetectorModel
    recogniser: Recogniser
    voice: Voice
    pool: InferencePool


@dataclass(frozen=True)
class ModelState:
    """How far loading is; ``message`` says why it failed."""

    status: Literal["idle", "loading", "ready", "failed"]
    message: str = ""

    def __str__(self) -> str:
        return f"{self.status}: {self.message}" if self.message else self.status


_lock = threading.Lock()
_loading: Future[Models] | None = None


def start() -> None:
    """Begin to load, unless that has begun before. Returns at once."""
    global _loading
    with _lock:
        if _loading is not None:
            return
        future: Future[Models] = Future()
        # Running means that nobody who stops waiting for it can cancel it for the others.
        future.set_running_or_notify_cancel()
        _loading = future
    threading.Thread(target=_load, args=(future,), name="voice-models", daemon=True).start()


def state() -> ModelState:
    """Return how far loading is."""
    future = _loading
    if future is None:
        return ModelState("idle")
    if not future.done():
        return ModelState("loading")
    error = future.exception()
    return ModelState("failed", str(error)) if error else ModelState("ready")


async def ready() -> Models:
    """Wait until the models are loaded, starting that if need be; raise ``ModelError`` if they cannot be."""
    start()
    future = _loading
    assert future is not None
    return await asyncio.shield(asyncio.wrap_future(future))


def wait() -> Models:
    """Block until the models are loaded; for threads and commands, never for the event loop."""
    start()
    future = _loading
    assert future is not None
    return future.result()


async def aclose() -> None:
    """End the inference threads and forget models and provider; ``start`` may be called again."""
    global _loading
    await providers.aclose()
    with _lock:
        future, _loading = _loading, None
    if future is None:
        return
    try:
        models = await asyncio.wrap_future(future)
    except ModelError:
        return
    await asyncio.to_thread(models.pool.close)


def _load(future: Future[Models]) -> None:
    try:
        models = load()
    except ModelError as error:
        logger.error("The voice models cannot be used: %s", error)
        future.set_exception(error)
    except Exception as error:
        logger.exception("The voice models cannot be loaded")
        future.set_exception(ModelError(f"The voice models cannot be loaded ({type(error).__name__})."))
    else:
        future.set_result(models)


def load() -> Models:
    """Load and warm up all models here and now; takes one to three seconds."""
    detector, recogniser, voice = DetectorModel(), Recogniser(), HibariVoice()
    Detector(detector).feed(np.zeros(WINDOW_SAMPLES, np.float32))
    # The first run of each model allocates its memory: better now than in somebody's first turn.
    speech = voice.speak("Hello. I am ready, and this sentence about anything warms up the voice.")
    heard = to_float(speech.samples)
    recogniser.recognise(heard[: 3 * RATE_HZ])
    return Models(detector, recogniser, voice, InferencePool())
