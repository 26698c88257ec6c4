#include "weft/store.h"
