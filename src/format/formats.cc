#include "weft/format.h"
