#include "os/fault_guard.h"

#include <array>
#include <csetjmp>
#include <csignal>
#include <mutex>

namespace weft {
namespace {

constexpr std::array<int, 2> kSignals = {SIGSEGV, SIGBUS};

// ThreadSanitizer calls these handlers from its own, with all signals blocked; then the jump must restore the mask.
#ifdef __SANITIZE_THREAD__
constexpr int kSaveMask = 1;
#else
constexpr int kSaveMask = 0;
#endif

// The innermost guard of this thread.
thread_local sigjmp_buf* innermost = nullptr;

std::array<struct sigaction, kSignals.size()> before{};

// Restores the earlier handler. The faulting instruction runs again under it, so that a core or a sanitizer's report
// shows the right place. A signal of kill(2) has no such instruction and is raised again.
void hand_back(int signal, bool sent) {
  for (std::size_t i = 0; i < kSignals.size(); ++i)
    if (kSignals[i] == signal) ::sigaction(signal, &before[i], nullptr);
  if (sent) ::raise(signal);
}

extern "C" void on_guarded_fault(int signal, siginfo_t* info, void* /*context*/) {
  const bool sent = info->si_code <= 0;  // sigaction(2): the codes of kill(2) and the like
  if (innermost != nullptr && !sent) siglongjmp(*innermost, 1);
  hand_back(signal, sent);
}

void install() {
  struct sigaction action {};
  action.sa_sigaction = on_guarded_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;  // no signal mask to restore after the jump
  ::sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &before[i]);
}

}  // namespace

bool fault_guard::run(void (*body)(void*), void* argument) {
  static std::once_flag once;
  std::call_once(once, install);
  sigjmp_buf here;
  sigjmp_buf* const outer = innermost;
  if (sigsetjmp(here, kSaveMask) != 0) {
    innermost = outer;
    return false;
  }
  innermost = &here;
  body(argument);
  innermost = outer;
  return true;
}

void escape_fault_guard() {
  if (innermost != nullptr) siglongjmp(*innermost, 1);
}

}  // namespace weft
