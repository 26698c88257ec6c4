#include "cli/signals.h"

#include <unistd.h>

#include <csignal>
#include <string_view>

namespace weft {
namespace {

std::atomic<int> interrupted = 0;
static_assert(std::atomic<int>::is_always_lock_free);  // required in a signal handler

extern "C" void on_interrupt(int signal) {
  interrupted.store(signal);
}

extern "C" void on_fault(int /*signal*/) {
  constexpr std::string_view kMessage = "weft: the index looks damaged; run `weft fsck --rebuild`\n";
  static_cast<void>(!::write(STDERR_FILENO, kMessage.data(), kMessage.size()));
  ::_exit(1);
}

void handle(int signal, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

}  // namespace

const std::atomic<int>& interrupt_signal() {
  return interrupted;
}

void catch_interrupts() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_IGN)
      handle(signal, on_interrupt, SA_RESTART | static_cast<int>(SA_RESETHAND));  // keeps an ignored SIGHUP (nohup)
  }
}

void explain_faults() {
  if (kSanitized) return;
  handle(SIGSEGV, on_fault, 0);
  handle(SIGBUS, on_fault, 0);
}

void die_of_closed_pipes() {
  handle(SIGPIPE, SIG_DFL, 0);
}

}  // namespace weft
