package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	dns "portolan/internal/base/dnsmsg"
)

// The number of records that are imported into a live view, and the goals for changes meanwhile.
const (
	importedRecords = 200_000
	importTime      = 100 * time.Millisecond
)

// measureDuringImport measures changes while many records are imported into a zone of the live view, until the last one is answered, and a
// full deployment that begins in the middle.
func (w *wired) measureDuringImport(m *child) error {
	var file strings.Builder
	file.WriteString("type,name,text\n")
	for i := range importedRecords {
		fmt.Fprintf(&file, "TXTRecord,beside-%d,text %d\n", i, i)
	}
	type ended struct {
		took time.Duration
		err  error
	}
	imported, deployed := make(chan ended, 1), make(chan ended, 1)
	start := time.Now()
	go func() {
		took, err := runImport(m, "zones/"+w.zone+"/resourceRecords", file.String(), importedRecords)
		if err == nil {
			err = w.answersWith(fmt.Sprintf("beside-%d.example.", importedRecords-1), dns.TypeTXT, 1)
		}
		imported <- ended{took, err}
	}()
	var all []time.Duration
	var full ended
	deploys, done := false, false
	for !done || deploys && full.took == 0 {
		took, err := w.change(w.next())
		if err != nil {
			return err
		}
		if all = append(all, took); len(all) == 20 {
			deploys = true
			go func() {
				began := time.Now()
				servers, err := w.api.IDs(context.Background(), "servers", "", 1)
				if err == nil {
					d, e := w.api.DeployServer(context.Background(), servers[0], "FullDeployment")
					if err = e; err == nil {
						_, err = w.api.WaitForDeployment(context.Background(), d.ID)
					}
				}
				deployed <- ended{time.Since(began), err}
			}()
		}
		select {
		case e := <-imported:
			if e.err != nil {
				return e.err
			}
			done = true
			w.b.addResult(fmt.Sprintf("(B) import of %d records into the live view; until the last is answered", importedRecords),
				fmt.Sprintf("%s; %s", e.took.Round(time.Millisecond), time.Since(start).Round(time.Millisecond)))
		case full = <-deployed:
			if full.err != nil {
				return full.err
			}
			w.b.addResult("(B) a full deployment that begins during the import", full.took.Round(time.Millisecond).String())
		default:
		}
	}
	slices.Sort(all)
	at := all[len(all)*99/100]
	w.b.add(fmt.Sprintf("(B) from acknowledgement to answer at %d service points beside the import, p99 of %d", wirePoints, len(all)),
		at.Round(time.Millisecond).String(), importTime.String(), float64(at)/float64(importTime), "at most 1", at <= importTime)
	w.b.addResult("(B) the same, median and maximum", fmt.Sprintf("%s; %s", all[len(all)/2].Round(time.Millisecond),
		all[len(all)-1].Round(time.Millisecond)))
	return nil
}
