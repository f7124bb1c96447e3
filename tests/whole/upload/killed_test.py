#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rounds of qut upload in which it is killed, or the receiver is, at an instant that nobody chose: nothing is lost, nothing is
counted twice, and what the receiver gets again has the same id and bytes. With LIMIT the receiver takes requests of so many bytes
only: what is longer becomes two, and two again.
usage: killed_test.py QUT GOLDEN_MAKER [ROUNDS [SEED [LIMIT [FORM]]]]"""
import os
import random
import subprocess
import sys
import time

from upload_parts import Receiver, check, end, folder, make_trace, read_account

QUT, GOLDEN_MAKER = map(os.path.abspath, sys.argv[1:3])
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 20
SEED = int(sys.argv[4]) if len(sys.argv) > 4 else 1
LIMIT = int(sys.argv[5]) if len(sys.argv) > 5 else 0
FORM = sys.argv[6] if len(sys.argv) > 6 else 'otlp'
SPOOL = 'spool'
ROUNDS_REMEMBERED = 5


def command(url, services, patience):
    return [QUT, 'upload', *(f'golden.qtrace,service={name}' for name in services), '--as', FORM, '--spool', SPOOL, '--to', url,
            '--quiet', '--wait', '1', '--patience', str(patience)]


history = {'taken': set(), 'sent': set(), 'dropped': set(), 'split': set()}
replaced = []  # the sum of what was sent, of the account that was seen last


def counts_agree(what):
    # Each taken id has at most one end, or lies there: what the account has not yet, the folder has. An account that has become long
    # is replaced by a short one, with sums of what was: they are what was read there.
    ids, waiting = read_account(SPOOL)
    for word, known in history.items():
        check(f'{what}: none twice: {word}', len(set(ids[word])) == len(ids[word]), ids[word])
        known |= set(ids[word])
    # Who begins ends what a killed one had begun to split, and only then makes the account short: of these ends it has the sum.
    if ids['+sent'] and ids['+sent'] != replaced:
        history['split'] |= history['taken'] - history['sent'] - history['dropped'] - history['split'] - set(waiting)
    replaced[:] = ids['+sent']
    for word, known in history.items():
        if word != 'taken':
            check(f'{what}: {word}: a short account says the same', sum(ids[f'+{word}']) + len(ids[word]) == len(known),
                  (ids[f'+{word}'], len(ids[word]), len(known)))
    ended = history['sent'] | history['dropped'] | history['split']
    check(f'{what}: ended once', len(ended) == sum(len(history[word]) for word in ('sent', 'dropped', 'split')) and ended <= history['taken'],
          ended - history['taken'])
    check(f'{what}: none is lost', history['taken'] <= ended | set(waiting), history['taken'] - ended - set(waiting))
    return waiting, bool(ids['+sent'])


def main():
    draw = random.Random(SEED)
    with folder() as work:
        os.chdir(work)
        make_trace(QUT, GOLDEN_MAKER)
        receiver = Receiver('receiver')
        try:
            begin = time.monotonic()
            probe = subprocess.run(command(receiver.url, ['first'], 30), capture_output=True, text=True, check=False)
            if 'without libcurl' in probe.stderr:
                print('SKIP: this qut was built without libcurl')
                return 77
            whole = receiver.log()[0]['sum']
            if LIMIT:
                with open('receiver/limit', 'w', encoding='ascii') as file:
                    file.write(str(LIMIT))
            begin = time.monotonic() if LIMIT else begin
            subprocess.run(command(receiver.url, ['second'], 30), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            longest = time.monotonic() - begin
            given = batch = ['first', 'second']
            is_short = False
            for round_ in range(ROUNDS):
                services = [f'r{round_}-{i}' for i in range(3)]
                given = given + services
                batch = batch + services
                process = subprocess.Popen(command(receiver.url, services, 0), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(draw.random() * longest)
                if draw.random() < 0.3:
                    receiver.kill()
                    process.wait()
                    receiver.start()
                else:
                    process.kill()
                    process.wait()
                is_short |= counts_agree(f'round {round_}')[1]
                # A spool remembers the newest of what it sent: what an earlier round could not give is given before that is over.
                if round_ % ROUNDS_REMEMBERED == ROUNDS_REMEMBERED - 1:
                    subprocess.run(command(receiver.url, batch, 60), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
                    is_short |= counts_agree(f'behind round {round_}')[1]
                    batch = []
            # What was not taken is, what waits is sent.
            last = subprocess.run(command(receiver.url, batch or given[-1:], 60), capture_output=True, text=True, check=False)
            waiting, is_shortened = counts_agree('at the end')
            is_short |= is_shortened
            splits = len(history['split'])
            count = len(given) + splits
            check('at the end: the balance', last.stdout.strip() == f'taken {count} = sent {count} + waiting 0 + dropped 0' +
                  (f'; split in two: {splits}' if splits else '') and last.returncode == 0, (last.returncode, last.stdout, last.stderr))
            check('at the end: all but the first were split, if any', splits >= len(given) - 1 if LIMIT else not splits, splits)
            log = [entry for entry in receiver.log() if entry['accepted']]
            got = {}
            for entry in log:
                got.setdefault(entry['id'], set()).add(entry['hash'])
            taken = history['taken'] - history['split']
            check('at the end: the receiver has what was taken, no more and no less', set(got) == taken and not waiting, set(got) ^ taken)
            check('at the end: what came twice had the same bytes', all(len(hashes) == 1 for hashes in got.values()), got)
            sums = dict.fromkeys(given, 0)
            for entry in {entry['id']: entry for entry in log}.values():
                sums[entry['services'][0] if FORM == 'otlp' else entry['labels']['service_name']] += entry['sum']
            check('at the end: of each service all samples once', set(sums.values()) == {whole}, (whole, sums))
            print(f'{ROUNDS} rounds: {len(given)} traces, {len(got)} requests, of which {len(log) - len(got)} came again' +
                  ('; the account was replaced by a short one' if is_short else ''))
        finally:
            receiver.kill()
    return end('upload_killed')


if __name__ == '__main__':
    sys.exit(main())
