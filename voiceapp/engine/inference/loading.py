"""The models of this process: loaded once, in the background, and warmed up."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from voiceapp.audio.pcm import to_float
from voiceapp.engine.inference.pool import InferencePool
from voiceapp.engine.inference.recogniser import RATE_HZ, Recogniser
from voiceapp.engine.inference.vad import WINDOW_SAMPLES, Detector, DetectorModel
from voiceapp.engine.inference.voice import HibariVoice, Voice
from voiceapp.engine.inference.weights import ModelError
from voiceapp.types import Part

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


class ModelLoader:
    """The models of one process: loaded once, in a thread. ``load`` makes them, and may take seconds."""

    def __init__(self, load: Callable[[], Models] | None = None) -> None:
        self._load = load or load_models
        self._guard = threading.Lock()
        self._loading: Future[Models] | None = None

    def start(self) -> Future[Models]:
        """Begin to load, unless that has begun before. Returns at once what will be the models."""
        with self._guard:
            if self._loading is not None:
                return self._loading
            future: Future[Models] = Future()
            # Running means that nobody who stops waiting for it can cancel it for the others.
            future.set_running_or_notify_cancel()
            self._loading = future
        thread = threading.Thread(
            target=_load_into, args=(future, self._load), name="voice-models", daemon=True
        )
        thread.start()
        return future

    def state(self) -> ModelState:
        """Return how far loading is."""
        future = self._loading
        if future is None:
            return ModelState("idle")
        if not future.done():
            return ModelState("loading")
        error = future.exception()
        return ModelState("failed", str(error)) if error else ModelState("ready")

    async def ready(self) -> Models:
        """Wait until the models are loaded, starting that if need be.

        Raises ``ModelError`` where they cannot be.
        """
        return await asyncio.shield(asyncio.wrap_future(self.start()))

    def wait(self) -> Models:
        """Block until the models are loaded; for threads and commands, never for the event loop."""
        return self.start().result()

    async def aclose(self) -> None:
        """End the inference threads and forget the models."""
        with self._guard:
            future, self._loading = self._loading, None
        if future is None:
            return
        try:
            models = await asyncio.wrap_future(future)
        except ModelError:
            return
        await asyncio.to_thread(models.pool.close)


models: Final = Part[ModelLoader]("loader of the engine's models")


def _load_into(future: Future[Models], load: Callable[[], Models]) -> None:
    try:
        future.set_result(load())
    except ModelError as error:
        logger.error("The voice models cannot be used: %s", error)
        future.set_exception(error)
    except BaseException as error:
        # Nobody else would hear of it: whoever waits for the models raises it.
        logger.exception("The voice models cannot be loaded")
        future.set_exception(ModelError(f"The voice models cannot be loaded ({type(error).__name__})."))


def load_models() -> Models:
    """Load and warm up all models here and now; takes one to three seconds."""
    detector, recogniser, voice = DetectorModel(), Recogniser(), HibariVoice()
    Detector(detector).feed(np.zeros(WINDOW_SAMPLES, np.float32))
    # The first run of each model allocates its memory: better now than in somebody's first turn.
    speech = voice.speak("Hello. I am ready, and this sentence about anything warms up the voice.")
    heard = to_float(speech.samples)
    recogniser.recognise(heard[: 3 * RATE_HZ])
    return Models(detector, recogniser, voice, InferencePool())
