from .diagnosis import Diagnosis as Diagnosis
from .diagnosis import diagnose as diagnose
from .diagnosis import mixing_time as mixing_time
from .diagnosis import spectral_gap as spectral_gap
from .walk_facts import Constant as Constant
from .walk_facts import residual as residual
