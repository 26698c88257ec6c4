// Faults that code under test survives (os/fault_guard.h) are not the framework's; a crash still ends the test.
#define DOCTEST_CONFIG_NO_POSIX_SIGNALS
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

// LeakSanitizer asks for this. libfabric 1.17 leaves copies of fi_info behind that it makes for itself; those that we
// ask it for have owners (src/net/transport/provider.h).
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_suppressions();
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libfabric.so\n";
}
