// Faults that code under test survives (base/fault_guard.h) are not the framework's; a crash still ends the test.
#define DOCTEST_CONFIG_NO_POSIX_SIGNALS
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
