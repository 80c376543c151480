from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Line(_message.Message):
    __slots__ = ("counter", "reclaimer", "walk", "updates")
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    RECLAIMER_FIELD_NUMBER: _ClassVar[int]
    WALK_FIELD_NUMBER: _ClassVar[int]
    UPDATES_FIELD_NUMBER: _ClassVar[int]
    counter: int
    reclaimer: str
    walk: str
    updates: int
    def __init__(self, counter: _Optional[int] = ..., reclaimer: _Optional[str] = ..., walk: _Optional[str] = ..., updates: _Optional[int] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("line", "hop", "updates", "age_seconds")
    LINE_FIELD_NUMBER: _ClassVar[int]
    HOP_FIELD_NUMBER: _ClassVar[int]
    UPDATES_FIELD_NUMBER: _ClassVar[int]
    AGE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    line: Line
    hop: int
    updates: int
    age_seconds: float
    def __init__(self, line: _Optional[_Union[Line, _Mapping]] = ..., hop: _Optional[int] = ..., updates: _Optional[int] = ..., age_seconds: _Optional[float] = ...) -> None: ...

class Token(_message.Message):
    __slots__ = ("version", "line", "hop", "updates", "model", "weighted_sum", "step_size_sum", "inverse_importance_sum", "final", "memory", "gradient_sum", "seal", "ended_by", "end_seal")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    HOP_FIELD_NUMBER: _ClassVar[int]
    UPDATES_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    WEIGHTED_SUM_FIELD_NUMBER: _ClassVar[int]
    STEP_SIZE_SUM_FIELD_NUMBER: _ClassVar[int]
    INVERSE_IMPORTANCE_SUM_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_SUM_FIELD_NUMBER: _ClassVar[int]
    SEAL_FIELD_NUMBER: _ClassVar[int]
    ENDED_BY_FIELD_NUMBER: _ClassVar[int]
    END_SEAL_FIELD_NUMBER: _ClassVar[int]
    version: int
    line: Line
    hop: int
    updates: int
    model: bytes
    weighted_sum: bytes
    step_size_sum: float
    inverse_importance_sum: float
    final: bool
    memory: Memory
    gradient_sum: bytes
    seal: bytes
    ended_by: str
    end_seal: bytes
    def __init__(self, version: _Optional[int] = ..., line: _Optional[_Union[Line, _Mapping]] = ..., hop: _Optional[int] = ..., updates: _Optional[int] = ..., model: _Optional[bytes] = ..., weighted_sum: _Optional[bytes] = ..., step_size_sum: _Optional[float] = ..., inverse_importance_sum: _Optional[float] = ..., final: _Optional[bool] = ..., memory: _Optional[_Union[Memory, _Mapping]] = ..., gradient_sum: _Optional[bytes] = ..., seal: _Optional[bytes] = ..., ended_by: _Optional[str] = ..., end_seal: _Optional[bytes] = ...) -> None: ...

class Memory(_message.Message):
    __slots__ = ("epoch", "nodes", "ages", "squared_ages", "curvature", "collects")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    AGES_FIELD_NUMBER: _ClassVar[int]
    SQUARED_AGES_FIELD_NUMBER: _ClassVar[int]
    CURVATURE_FIELD_NUMBER: _ClassVar[int]
    COLLECTS_FIELD_NUMBER: _ClassVar[int]
    epoch: str
    nodes: float
    ages: float
    squared_ages: float
    curvature: float
    collects: bool
    def __init__(self, epoch: _Optional[str] = ..., nodes: _Optional[float] = ..., ages: _Optional[float] = ..., squared_ages: _Optional[float] = ..., curvature: _Optional[float] = ..., collects: _Optional[bool] = ...) -> None: ...

class Announcement(_message.Message):
    __slots__ = ("degree", "importance", "reaches_you", "newest", "final", "progress", "final_digest", "confirmed_by", "had")
    DEGREE_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    REACHES_YOU_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    FINAL_DIGEST_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_BY_FIELD_NUMBER: _ClassVar[int]
    HAD_FIELD_NUMBER: _ClassVar[int]
    degree: int
    importance: float
    reaches_you: bool
    newest: Line
    final: Line
    progress: Progress
    final_digest: str
    confirmed_by: bytes
    had: Mark
    def __init__(self, degree: _Optional[int] = ..., importance: _Optional[float] = ..., reaches_you: _Optional[bool] = ..., newest: _Optional[_Union[Line, _Mapping]] = ..., final: _Optional[_Union[Line, _Mapping]] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., final_digest: _Optional[str] = ..., confirmed_by: _Optional[bytes] = ..., had: _Optional[_Union[Mark, _Mapping]] = ...) -> None: ...

class Mark(_message.Message):
    __slots__ = ("line", "hop")
    LINE_FIELD_NUMBER: _ClassVar[int]
    HOP_FIELD_NUMBER: _ClassVar[int]
    line: Line
    hop: int
    def __init__(self, line: _Optional[_Union[Line, _Mapping]] = ..., hop: _Optional[int] = ...) -> None: ...

class Greeting(_message.Message):
    __slots__ = ("version", "name", "plan_digest", "plan", "announcement", "newest_seal", "final_seal", "progress_seal")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PLAN_DIGEST_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    ANNOUNCEMENT_FIELD_NUMBER: _ClassVar[int]
    NEWEST_SEAL_FIELD_NUMBER: _ClassVar[int]
    FINAL_SEAL_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_SEAL_FIELD_NUMBER: _ClassVar[int]
    version: int
    name: str
    plan_digest: str
    plan: str
    announcement: Announcement
    newest_seal: bytes
    final_seal: bytes
    progress_seal: bytes
    def __init__(self, version: _Optional[int] = ..., name: _Optional[str] = ..., plan_digest: _Optional[str] = ..., plan: _Optional[str] = ..., announcement: _Optional[_Union[Announcement, _Mapping]] = ..., newest_seal: _Optional[bytes] = ..., final_seal: _Optional[bytes] = ..., progress_seal: _Optional[bytes] = ...) -> None: ...

class Receipt(_message.Message):
    __slots__ = ("version", "outcome", "reason", "newest", "newest_seal")
    class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNSPECIFIED: _ClassVar[Receipt.Outcome]
        ACCEPTED: _ClassVar[Receipt.Outcome]
        OBSOLETE: _ClassVar[Receipt.Outcome]
        REFUSED: _ClassVar[Receipt.Outcome]
    UNSPECIFIED: Receipt.Outcome
    ACCEPTED: Receipt.Outcome
    OBSOLETE: Receipt.Outcome
    REFUSED: Receipt.Outcome
    VERSION_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIELD_NUMBER: _ClassVar[int]
    NEWEST_SEAL_FIELD_NUMBER: _ClassVar[int]
    version: int
    outcome: Receipt.Outcome
    reason: str
    newest: Line
    newest_seal: bytes
    def __init__(self, version: _Optional[int] = ..., outcome: _Optional[_Union[Receipt.Outcome, str]] = ..., reason: _Optional[str] = ..., newest: _Optional[_Union[Line, _Mapping]] = ..., newest_seal: _Optional[bytes] = ...) -> None: ...
