#include "weft/manifest.h"
