from .constants import Constant as Constant
from .constants import residual as residual
from .coverage import Coverage as Coverage
from .diagnosis import Diagnosis as Diagnosis
from .diagnosis import diagnose as diagnose
from .diagnosis import mixing_time as mixing_time
from .diagnosis import spectral_gap as spectral_gap
